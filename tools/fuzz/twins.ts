import fc, { type Arbitrary } from 'fast-check';
import { type Ask, messageOf } from './ask';
import type { Answer } from './client';
import { askFor } from './asks';
import { Finding, excerpt } from './oracles';
import type { Target } from './target';
import { ALICE, CAROL, detailsOf, Tenant } from './world';

/** The same request twice: once for what the caller may not see, once for what does not exist. */
export interface Twins {
  ask: Ask;
  user: number;
  /** The parameter that names the thing, and where it stands. */
  name: string;
  hidden: string;
  missing: string;
}

/** Its rows stay as they were made. */
const TENANT = new Tenant(1);
const MISSING = ['999999999', '9007199254740991', '9223372036854775807', '0'];

const id = (n: number) => String(TENANT.base + n);
const slugOf = (n: number) => `${TENANT.username(CAROL)}/${detailsOf(TENANT.games[n - 1]!, TENANT).slug}`;

function kindsOf(operation: string): Pick<Twins, 'user' | 'name' | 'hidden'>[] {
  if (operation.includes('{collection_id}')) {
    const kinds = [{ user: CAROL, name: 'collection_id', hidden: id(2) }];
    if (operation.endsWith('/add-game'))
      kinds.push(...[7].map((n) => ({ user: ALICE, name: 'game_id', hidden: id(n) })));
    return kinds;
  }
  if (/\/games?\/\{game_id\}\/(purchases|download_keys)$/.test(operation))
    return [
      { user: CAROL, name: 'game_id', hidden: id(1) },
      { user: ALICE, name: 'game_id', hidden: id(7) },
    ];
  if (operation === 'GET /wharf/latest')
    return [
      { user: CAROL, name: 'game_id', hidden: id(3) },
      { user: CAROL, name: 'target', hidden: slugOf(7) },
    ];
  if (
    ['POST /collections', 'POST /credentials/subkey'].includes(operation) ||
    /\/games?\/\{game_id\}/.test(operation)
  )
    return [
      { user: CAROL, name: 'game_id', hidden: id(2) },
      { user: ALICE, name: 'game_id', hidden: id(7) },
    ];
  return [];
}

export function twinsOf(target: Target): Arbitrary<Twins> {
  const arbitraries = [...target.operations.values()].flatMap((operation) =>
    kindsOf(operation.name).map((kind) =>
      fc.record({
        ask: askFor(operation, TENANT),
        user: fc.constant(kind.user),
        name: fc.constant(kind.name),
        hidden: fc.constant(kind.hidden),
        missing: kind.name === 'target' ? fc.constant('nobody/nothing') : fc.constantFrom(...MISSING),
      }),
    ),
  );
  return fc.oneof(...arbitraries);
}

const ELSEWHERE: Record<string, Record<string, string>> = {
  // A collection that Alice can edit, so that it is the game that is not there.
  game_id: { collection_id: id(1) },
};

const others: Record<string, string[]> = { game_id: ['target'], target: ['game_id'] };

function about({ ask: { body: _, method: __, ...ask }, name }: Twins, value: string): Ask {
  const inPath = name in ask.path;
  const without = ask.fields.filter(
    (field) => field.name.split('[')[0] !== name && !(others[name] ?? []).includes(field.name.split('[')[0]!),
  );
  const place = ask.operation.startsWith('GET') ? ('query' as const) : ('body' as const);
  const fields = inPath ? without : [...without, { name, value, place }];
  const path = { ...ask.path, ...(inPath ? { [name]: value } : {}) };
  if ('KEY' in path) path.KEY = 'key';
  const elsewhere = name in ask.path ? {} : ELSEWHERE[name];
  for (const other in elsewhere) if (other in path) path[other] = elsewhere[other]!;
  return { ...ask, path, fields };
}

const UNEQUAL = ['x-request-id', 'date'];
const outside = ({ status, headers, body }: Answer) =>
  JSON.stringify([status, headers.filter(([name]) => !UNEQUAL.includes(name)), body]);

export async function runTwins(target: Target, twins: Twins): Promise<void> {
  const answers: Answer[] = [];
  for (const value of [twins.hidden, twins.missing]) {
    const message = messageOf(about(twins, value), TENANT.key(twins.user));
    const operation = target.operation(twins.ask.operation);
    answers.push((await target.send(message, { operation, makesCredential: true })).answer);
  }
  const [hidden, missing] = answers as [Answer, Answer];
  if (outside(hidden) !== outside(missing))
    throw new Finding(
      'indistinguishable',
      `${twins.ask.operation} tells what is hidden from what is missing by ${twins.name}`,
      `${excerpt(hidden)}\n${excerpt(missing)}`,
    );
}
