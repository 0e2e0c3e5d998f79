import type { Contract } from '../../test/support/contract';
import { type HttpResponse, findHeader } from '../../test/support/floods/client';
import type { Operation } from './operations';
import { ECHO } from './values';
import { CANARY } from '../../test/support/world/world';

/** An error found by the fuzzer. `oracle` and `what` identify its type; `seen` describes this case of it. */
export class Finding extends Error {
  constructor(
    readonly oracle: string,
    readonly what: string,
    readonly seen = '',
  ) {
    super(`${oracle}: ${what}${seen && `\n${seen}`}`);
  }

  get kind(): string {
    return `${this.oracle}: ${this.what}`.replace(/\d+/g, '#').slice(0, 200);
  }
}

export interface Asked {
  method: string;
  path: string;
  /** The operation; undefined if the request uses a different method. */
  operation?: Operation;
  /** The response may contain a credential that it has just created. */
  makesCredential?: boolean;
}

const excerpt = (response: HttpResponse) =>
  `${response.status} ${JSON.stringify(response.headers)} ${JSON.stringify(response.body.slice(0, 600))}`;

const OUR_KEY = /gw_[0-9A-Za-z]{38}/;
const JWT = /eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}/;
const HASH = /\$argon2|\$scrypt/;

/** What no output may contain: planted secrets, credentials created by the service, password hashes. */
export function leakIn(text: string, { made = false } = {}): string | undefined {
  if (text.includes(CANARY)) return 'a planted secret';
  if (HASH.test(text)) return "a password's hash";
  if (made) return undefined;
  if (OUR_KEY.test(text)) return 'an API key';
  return JWT.test(text) ? 'a JWT' : undefined;
}

const HEADERS = ['x-request-id', 'x-content-type-options', 'cache-control', 'content-security-policy'];
const BODILESS = [204, 303, 304];

/** Checks that apply to every response; returns the body if it is JSON. */
export function check(contract: Contract, asked: Asked, response: HttpResponse): unknown {
  const { method, path, operation } = asked;
  const name = operation?.name ?? `${method} ${path.split('?')[0]}`;
  const fail = (oracle: string, what: string): never => {
    throw new Finding(oracle, `${name} ${what}`, excerpt(response));
  };
  const { status, headers, body } = response;
  if (!(status >= 200 && status < 500)) fail('status', `returns ${status}`);
  const text = headers.map(([header, value]) => `${header}: ${value}`).join('\n');
  const leak = leakIn(`${text}\n${body}`, { made: asked.makesCredential });
  if (leak) fail('secret', `shows ${leak}`);
  if (text.includes(ECHO)) fail('echo', 'echoes its input in a header');
  for (const header of HEADERS)
    if (findHeader(response, header) === undefined) fail('headers', `lacks ${header}`);
  for (const header of ['server', 'x-powered-by', 'x-injected'])
    if (findHeader(response, header) !== undefined) fail('headers', `has ${header}`);
  if (method === 'HEAD' || BODILESS.includes(status)) {
    if (body !== '') fail('body', `has a body with ${status}`);
    return undefined;
  }
  const type = findHeader(response, 'content-type') ?? '';
  if (!type.startsWith('application/json')) {
    const described = status === 200 && operation && type.startsWith(operation.type);
    // The text of a redirect names its target, which the description omits.
    if (!described && status !== 302 && (operation || status >= 400))
      fail('envelope', `returns ${status} as ${type}`);
    return undefined;
  }
  const json = parsed(body) ?? fail('envelope', 'returns a body that is not JSON');
  // Only the operator gets the name of an unknown record type.
  if (status >= 400 && body.includes(ECHO) && path !== '/operator/import')
    fail('echo', `echoes its input with ${status}`);
  try {
    const header = (field: string) => findHeader(response, field.toLowerCase());
    contract.check(method, path, { status, body: json, header });
  } catch (error) {
    fail('schema', (error as Error).message.split('\n')[0]!);
  }
  return json;
}

/** Checks that the description lists the status for the operation. */
export function checkDescribed(operation: Operation, response: HttpResponse, unroutable: boolean): void {
  const { status } = response;
  if (unroutable && [400, 404, 405].includes(status)) return;
  if (!operation.statuses.has(status))
    throw new Finding('description', `${operation.name} does not list ${status}`, excerpt(response));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export { excerpt };
