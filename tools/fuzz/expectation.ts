import { Answers } from './answers';
import type { Ask } from './ask';
import { BODIES } from './bodies';
import { type Bearer, bearerOf, covers, credentialOf } from './credentials';
import type { Json } from './json';
import type { Operation } from './operations';
import { canView, type Tenant } from './world';
import { judge, type Judged } from './verdicts';

/** What an answer must be, as far as the ask alone tells. */
export interface Expectation {
  statuses: number[];
  /** The whole body. */
  body?: Json;
  /** The only texts of the error. */
  errors?: string[];
  /** Parameters that the error has to name. */
  names?: string[];
  /** How sure: a good request, so that 200s can be counted on. */
}

const refused = (status: number, ...errors: string[]): Expectation => ({ statuses: [status], errors });
const success = (body: Json): Expectation => ({ statuses: [200], body });
const found = (answer: Json, missing = 'invalid game'): Expectation =>
  typeof answer === 'string'
    ? refused(404, answer)
    : answer === undefined
      ? refused(404, missing)
      : success(answer);

const decodes = (text: string) => !/\p{Surrogate}/u.test(text);

/** The checks in the order of the specification: route, credential, scope, parameters, object. */
export function expectationOf(
  ask: Ask,
  operation: Operation,
  tenant: Tenant,
  others: Set<string>,
): Expectation {
  const path = Object.values(ask.path);
  if (path.some((value) => value === '')) return { statuses: [404, 405] };
  if (path.some((value) => !decodes(value))) return { statuses: [400] };
  if (ask.method && ask.method !== operation.method) {
    if (ask.method !== 'HEAD' || operation.method !== 'GET')
      return others.has(`${ask.method === 'HEAD' ? 'GET' : ask.method} ${operation.path}`) ||
        ask.method === 'OPTIONS'
        ? { statuses: [200, 204, 400, 401, 403, 404, 405, 413, 415] }
        : refused(405, 'method not allowed');
  }
  let bearer: Bearer | undefined;
  if (operation.secured) {
    const admitted = admit(ask, operation, tenant);
    if ('statuses' in admitted) return admitted;
    bearer = admitted;
  }
  if (operation.path.startsWith('/operator/')) return { statuses: [401] };
  const expected = ofParameters(ask, operation, tenant, bearer);
  const retried = ask.headers.some(([name]) => name === 'Idempotency-Key');
  const known = ask.headers.some(([name]) => name === 'If-None-Match');
  if (!retried && !known) return expected;
  return { statuses: [...expected.statuses, ...(retried ? [400] : []), ...(known ? [304] : [])] };
}

function admit(ask: Ask, operation: Operation, tenant: Tenant): Bearer | Expectation {
  const legacy = 'KEY' in ask.path;
  const key = ask.path.KEY;
  const inPath = legacy && key !== 'key' && key !== 'jwt';
  // Whatever the path may hold: a key of the tenant is known by its text.
  const name = inPath
    ? [...['a', 'b', 'c'], ...PATH_KEYS].find((one) => credentialOf(tenant, one, new Map()) === key)
    : ask.credential;
  const bearer = name === undefined ? undefined : bearerOf(tenant, name);
  if (!bearer) {
    if (inPath) return refused(401, 'invalid key');
    if (name === 'none' || name === 'empty') return refused(401, 'authentication required');
    if (name === 'operator') return refused(401, key === 'jwt' ? 'invalid token' : 'invalid key');
    const token = name!.startsWith('jwt:');
    if (legacy) return refused(401, key === 'jwt' ? 'invalid token' : 'invalid key');
    return refused(401, token ? 'invalid token' : 'invalid key');
  }
  if (legacy && !inPath && key !== (bearer.type === 'jwt' ? 'jwt' : 'key'))
    return refused(401, key === 'jwt' ? 'invalid token' : 'invalid key');
  if (operation.path === '/credentials/subkey' && bearer.type === 'jwt')
    return refused(403, 'an api key is required');
  const what = bearer.type === 'jwt' ? 'token' : 'api key';
  if (operation.scope !== undefined && !covers(bearer.scopes, operation.scope))
    return refused(403, `${what} does not permit \`${operation.scope}\``);
  return bearer;
}

const PATH_KEYS = ['profile:me', 'profile', 'game:view', 'game:view:purchases', 'collection'].map(
  (s) => `a:${s}`,
);

function ofParameters(
  ask: Ask,
  operation: Operation,
  tenant: Tenant,
  bearer: Bearer | undefined,
): Expectation {
  if (operation.method === 'POST' && ask.body) {
    const known = BODIES.find(({ type, text }) => type === ask.body!.type && text === ask.body!.text);
    const reads = operation.parameters.some((one) => one.in !== 'header');
    return known?.status && reads && !ask.path.KEY
      ? { statuses: [known.status] }
      : { statuses: [200, 400, 403, 404, 413, 415] };
  }
  const judged = judge(operation, ask.path, ask.fields, ask.encoding);
  const bad = [...judged].filter(([, { verdict }]) => verdict === 'bad').map(([name]) => name);
  if (bad.length > 0) return { statuses: [400], names: bad };
  if ([...judged.values()].some(({ verdict }) => verdict === 'either'))
    return { statuses: [200, 400, 403, 404] };
  return ofObject(operation, judged, tenant, bearer);
}

const idOf = (judged: Map<string, Judged>, name: string): number | undefined => {
  const value = judged.get(name)?.value;
  return value === undefined ? undefined : Number(value);
};
const textOf = (judged: Map<string, Judged>, name: string) => judged.get(name)?.value as string | undefined;

function ofObject(
  operation: Operation,
  judged: Map<string, Judged>,
  tenant: Tenant,
  bearer: Bearer | undefined,
): Expectation {
  const answers = new Answers(tenant);
  const game_id = idOf(judged, 'game_id');
  const user_id = idOf(judged, 'user_id');
  const email = textOf(judged, 'email')?.replaceAll(' ', '+');
  const by = { ...(user_id === undefined ? {} : { user_id }), ...(email === undefined ? {} : { email }) };
  const legacy = operation.path.startsWith('/api/1/');
  switch (operation.path.replace('/api/1/{KEY}', '')) {
    case '/credentials/info':
      if (bearer!.type === 'jwt') return { statuses: [200] };
      return success({ ...(legacy ? {} : { type: bearer!.type }), scopes: bearer!.scopes });
    case '/me':
    case '/profile':
      return success({ user: answers.user(bearer!.user) });
    case '/my-games':
    case '/profile/games':
      return success(answers.games(bearer!.user, legacy));
    case '/game/{game_id}/purchases':
    case '/games/{game_id}/purchases':
      return found(answers.purchases(game_id!, bearer!.user, by, legacy) as Json);
    case '/games/{game_id}/sales':
      return found(
        answers.sales(game_id!, bearer!.user, {
          since: textOf(judged, 'since'),
          page: idOf(judged, 'page') ?? 1,
          per_page: idOf(judged, 'per_page') ?? 100,
        }) as Json,
      );
    case '/game/{game_id}/download_keys':
    case '/games/{game_id}/download_keys': {
      const download_key = textOf(judged, 'download_key');
      return found(
        answers.downloadKey(
          game_id!,
          bearer!.user,
          { ...by, ...(download_key === undefined ? {} : { download_key }) },
          legacy,
        ),
      );
    }
    case '/game/{game_id}':
    case '/games/{game_id}': {
      const game = tenant.game(game_id!);
      return game && canView(game, bearer!.user) ? { statuses: [200] } : refused(404, 'invalid game');
    }
    case '/games/{game_id}/ownership': {
      const game = tenant.game(game_id!);
      const owns = game !== undefined && answers.owns(game, bearer!.user);
      return game && (owns || canView(game, bearer!.user)) ? success({ owns }) : refused(404, 'invalid game');
    }
    case '/wharf/latest':
      return found(
        answers.latest({
          channel_name: textOf(judged, 'channel_name')!,
          game_id,
          target: textOf(judged, 'target'),
        }),
      );
    case '/credentials/subkey': {
      const scopes = textOf(judged, 'scope')!.split(' ').filter(Boolean);
      if (scopes.length === 0 || scopes.some((scope) => scope !== 'profile:me'))
        return { statuses: [400], names: ['scope'] };
      if (!covers(bearer!.scopes, 'profile:me')) return refused(403, 'api key does not permit `profile:me`');
      const game = tenant.game(game_id!);
      return game && canView(game, bearer!.user) ? { statuses: [200] } : refused(404, 'invalid game');
    }
    case '/profile/collections':
      return { statuses: [200] };
    case '/collections': {
      const game = game_id === undefined ? undefined : tenant.game(game_id);
      if (game_id === undefined || (game && canView(game, bearer!.user))) return { statuses: [200] };
      return refused(404, 'invalid game');
    }
    case '/oauth/token':
    case '/oauth/device':
    case '/oauth/device/poll':
    case '/oauth/revoke':
      return { statuses: [200, 400, 401, 429] };
  }
  if (operation.path.startsWith('/collections/')) return { statuses: [200, 403, 404] };
  return { statuses: [200] };
}
