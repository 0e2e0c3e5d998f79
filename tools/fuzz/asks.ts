import fc, { type Arbitrary } from 'fast-check';
import type { Ask, Encoding, Field } from '../../test/support/world/message';
import { BODIES } from './bodies';
import { BAD, buildCredential, GOOD, NARROW, SCHEMES } from './credentials';
import type { Json } from '../../test/support/world/json';
import type { Operation, Parameter } from './operations';
import { ECHO, pathValue, rawValue, arbitraryValue } from './values';
import type { Tenant } from '../../test/support/world/world';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'];

const credential = fc.oneof(
  { arbitrary: fc.constantFrom(...GOOD), weight: 20 },
  { arbitrary: fc.constantFrom(...NARROW), weight: 3 },
  { arbitrary: fc.constantFrom(...BAD), weight: 2 },
);

const headerNoise: Arbitrary<[string, string]> = fc.oneof(
  fc.constantFrom<[string, string]>(
    ['X-Request-Id', 'trace-1.2:3_4'],
    ['X-Request-Id', 'x'.repeat(65)],
    ['X-Request-Id', `<${ECHO}>`],
    ['Cookie', 'gamewharf_session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['X-Forwarded-For', '203.0.113.9, ::1'],
    ['X-Forwarded-Host', `${ECHO}.example`],
    ['Origin', `https://${ECHO}.example`],
    ['Accept', '\xff\xfe;;;q=9'],
    ['If-None-Match', '*'],
    ['If-None-Match', `W/"${ECHO}", "\xff"`],
    ['Range', 'bytes=0-0'],
    ['traceparent', '00-00000000000000000000000000000000-0000000000000000-ff'],
    ['Upgrade', 'h2c'],
    ['X-HTTP-Method-Override', 'DELETE'],
  ),
  fc
    .tuple(fc.constant('X-Noise'), fc.string({ unit: 'grapheme-ascii', maxLength: 60 }))
    .map(([name, value]): [string, string] => [name, value.trim()]),
);

const idempotency = fc
  .oneof(fc.uuid(), fc.constantFrom('', ' ', 'x'.repeat(255), 'x'.repeat(256), '\xff', 'a\tb'))
  .map((key): [string, string] => ['Idempotency-Key', key]);

/**
 * A parameter that is present or absent, in its documented location or elsewhere, and sometimes repeated or
 * with brackets.
 */
function arbitraryField(
  parameter: Parameter,
  operation: Operation,
  tenant: Tenant,
  chosen: boolean,
): Arbitrary<Field[]> {
  const { name } = parameter;
  const own = parameter.in === 'body' ? ('body' as const) : ('query' as const);
  const place = fc.oneof(
    { arbitrary: fc.constant(own), weight: 9 },
    { arbitrary: fc.constant(operation.method === 'POST' ? ('query' as const) : own), weight: 1 },
  );
  const one = fc
    .record({ name: fc.constant(name), value: arbitraryValue(parameter, operation, tenant), place })
    .map((field) => [field]);
  const absent = fc.constant<Field[]>([]);
  const likely = parameter.required || chosen;
  return fc.oneof(
    { arbitrary: one, weight: likely ? 95 : 40 },
    { arbitrary: absent, weight: likely ? 2 : 60 },
    {
      arbitrary: fc.tuple(one, one).map(([[a], [b]]) => [a!, { ...b!, place: b!.place }]),
      weight: 1,
    },
    {
      arbitrary: fc
        .record({
          name: fc.constantFrom(`${name}[]`, `${name}[x]`, `${name}[0][y]`),
          value: fc.constant<Json>('1'),
          place,
        })
        .map((field) => [field]),
      weight: 1,
    },
    {
      arbitrary: fc
        .record({ name: fc.constant(name), value: rawValue, place, raw: fc.constant(true) })
        .map((field) => [field]),
      weight: 1,
    },
  );
}

const strange: Arbitrary<Field> = fc.record({
  name: fc.oneof(
    fc.constantFrom(
      '__proto__',
      'constructor',
      'toString',
      'api_key',
      'access_token',
      '',
      '[',
      ']',
      'x[',
      '\0',
      '\ud800',
      'limit',
    ),
    fc.string({ unit: 'binary', maxLength: 10 }).map((noise) => `x${noise}`),
  ),
  value: fc.oneof(fc.constantFrom<Json>('1', ECHO, null, {}), fc.string({ maxLength: 10 })),
  place: fc.constantFrom('query' as const, 'body' as const),
});

/** Generates every form of request for one operation. */
export function askFor(operation: Operation, tenant: Tenant): Arbitrary<Ask> {
  const inRequest = operation.parameters.filter((one) => one.in === 'query' || one.in === 'body');
  const inPath = operation.parameters.filter((one) => one.in === 'path');
  const { exactlyOneOf } = operation;
  const fields = fc
    .nat({ max: Math.max(0, exactlyOneOf.length - 1) })
    .chain((choice) =>
      fc.tuple(
        ...inRequest.map((parameter) => {
          const alternative = exactlyOneOf.includes(parameter.name);
          const chosen = exactlyOneOf[choice] === parameter.name;
          if (!alternative || chosen) return arbitraryField(parameter, operation, tenant, chosen);
          return fc.oneof(
            { arbitrary: fc.constant<Field[]>([]), weight: 24 },
            { arbitrary: arbitraryField(parameter, operation, tenant, false), weight: 1 },
          );
        }),
      ),
    )
    .map((each) => each.flat());
  const headers = fc.oneof(
    { arbitrary: fc.constant<[string, string][]>([]), weight: 9 },
    { arbitrary: fc.array(headerNoise, { minLength: 1, maxLength: 3 }), weight: 1 },
    ...(operation.parameters.some((one) => one.in === 'header')
      ? [{ arbitrary: idempotency.map((header) => [header]), weight: 1 }]
      : []),
  );
  const path = fc.record(
    Object.fromEntries(
      inPath.map((parameter) => [
        parameter.name,
        parameter.name === 'KEY' ? keyInPath(tenant) : pathValue(parameter, operation, tenant),
      ]),
    ),
  );
  return fc
    .record({
      operation: fc.constant(operation.name),
      credential,
      scheme: fc.oneof({ arbitrary: fc.constant(SCHEMES[0]!), weight: 9 }, fc.constantFrom(...SCHEMES)),
      path: path as Arbitrary<Record<string, string>>,
      fields,
      extra: fc.oneof(
        { arbitrary: fc.constant<Field[]>([]), weight: 12 },
        fc.array(strange, { minLength: 1, maxLength: 3 }),
      ),
      encoding: fc.constantFrom<Encoding>('form', 'form', 'json', 'multipart'),
      headers,
      method: rarely(fc.constantFrom(...METHODS), 40),
      body: operation.method === 'POST' ? rarely(fc.constantFrom(...BODIES), 25) : fc.constant(undefined),
    })
    .map(({ extra, method, body, ...ask }) => ({
      ...ask,
      fields: [...ask.fields, ...extra],
      ...(method === undefined ? {} : { method }),
      ...(body === undefined
        ? {}
        : { body: { type: body.type, text: body.text, ...(body.repeat ? { repeat: body.repeat } : {}) } }),
    }));
}

const rarely = <T>(arbitrary: Arbitrary<T>, outOf: number): Arbitrary<T | undefined> =>
  fc.oneof({ arbitrary: fc.constant(undefined), weight: outOf - 1 }, { arbitrary, weight: 1 });

const keyInPath = (tenant: Tenant) =>
  fc.oneof(
    { arbitrary: fc.constant('key'), weight: 10 },
    { arbitrary: fc.constant('jwt'), weight: 2 },
    {
      arbitrary: fc
        .constantFrom(...'a b c a:profile:me a:game:view:purchases a:collection revoked unknown'.split(' '))
        .map((name) => buildCredential(tenant, name, new Map())),
      weight: 3,
    },
    { arbitrary: fc.constantFrom('KEY', 'Key', '%', 'ключ', '\ud800', 'a b', '..', ''), weight: 1 },
  );
