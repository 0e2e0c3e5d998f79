import { isDeepStrictEqual } from 'node:util';
import type { Ask } from './ask';
import { expectationOf } from './expectation';
import { checkDescribed, excerpt, Finding } from './oracles';
import type { Answered, Target } from './target';

/** Sends one ask, and holds the answer against what the ask alone tells of it. */
export async function runAsk(target: Target, ask: Ask): Promise<void> {
  const operation = target.operation(ask.operation);
  const answered = await target.ask(ask);
  const { answer, json } = answered;
  const expected = expectationOf(ask, operation, target.tenant, new Set(target.operations.keys()));
  const fail = (what: string): never => {
    throw new Finding('verdict', `${ask.operation} ${what}`, excerpt(answer));
  };
  const { status } = answer;
  if (!expected.statuses.includes(status))
    fail(
      `answers ${status} instead of ${expected.statuses.join(' or ')}${expected.names ? ` for ${expected.names.join(', ')}` : ''}`,
    );
  const own = !ask.method || ask.method === operation.method;
  if (own) checkDescribed(operation, answer, Object.values(ask.path).some(isUnroutable));
  if (answer.body === '') return;
  const { errors } = json as { errors?: string[] };
  for (const name of (status === 400 && expected.names) || [])
    if (!errors!.some((text) => text.startsWith(`${name} `))) fail(`does not name ${name}`);
  if (expected.errors && status === expected.statuses[0] && !isDeepStrictEqual(errors, expected.errors))
    fail(`says ${JSON.stringify(errors)} instead of ${JSON.stringify(expected.errors)}`);
  if (expected.body !== undefined && status === 200 && !isDeepStrictEqual(json, normal(expected.body)))
    fail(`is not ${JSON.stringify(expected.body).slice(0, 400)}`);
  if (status === 200 && ask.operation === 'POST /collections' && own) await readBack(target, ask, answered);
}

const isUnroutable = (value: string) => value === '' || /\p{Surrogate}/u.test(value);

/** Without what JSON leaves out. */
const normal = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

/** What was just made is there for who made it, whichever replica is asked. */
async function readBack(target: Target, { credential }: Ask, { json }: Answered): Promise<void> {
  const { collection } = json as { collection: { id: number } };
  const path = { collection_id: String(collection.id) };
  const reading: Ask = {
    operation: 'GET /collections/{collection_id}',
    credential,
    scheme: 'Bearer CREDENTIAL',
    path,
    fields: [],
    encoding: 'form',
    headers: [],
  };
  const { answer, json: read } = await target.ask(reading, 1);
  if (!isDeepStrictEqual(read, { collection }))
    throw new Finding(
      'read after write',
      'POST /collections is read otherwise',
      `${JSON.stringify(collection)}\n${excerpt(answer)}`,
    );
}
