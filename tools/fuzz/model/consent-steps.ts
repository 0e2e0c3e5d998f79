import { createHash, randomBytes } from 'node:crypto';
import { queryOf } from '../ask';
import { type Answer, headerOf } from '../client';
import { covers } from '../credentials';
import { excerpt, Finding } from '../oracles';
import { Session } from '../session';
import { CALLBACK } from '../world';
import { credentialsOf, useEverywhere } from './credential-steps';
import type { Grant } from './model';
import type { Play } from './play';
import type { Of, WrongAsking } from './steps';

type Asking = Of<'ask access'>;
type Fields = Record<string, string>;

const ISSUER = 'http://127.0.0.1';
const PAGE = '/user/oauth';

export const scopesOf = (list: string) => [...new Set(list.split(' '))].sort();

/** What is wrong with a request, and what an application that was allowed something before is told of it; nothing: its user is told. */
const WRONG: Record<WrongAsking, { fields: Fields; told?: string }> = {
  client: { fields: { client_id: 'nobody' } },
  address: { fields: { redirect_uri: `${CALLBACK}/../evil` } },
  scope: { fields: { scope: 'profile:me game:view' }, told: 'invalid_scope' },
  response: { fields: { response_type: 'id_token' }, told: 'unsupported_response_type' },
  challenge: { fields: { code_challenge: '' }, told: 'invalid_request' },
  method: { fields: { code_challenge_method: 'plain' }, told: 'invalid_request' },
};

const fail = (what: string, answer: Answer): never => {
  throw new Finding('model', what, excerpt(answer));
};

/** By a user in a browser; who has no password is not signed in. */
export async function askAccess(play: Play, step: Asking): Promise<void> {
  const { user, state } = step;
  const verifier = randomBytes(32).toString('base64url');
  const fields = {
    response_type: 'code',
    client_id: play.tenant.clientId,
    redirect_uri: CALLBACK,
    scope: step.scope,
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...(step.wrong && WRONG[step.wrong].fields),
  };
  const session = user === 3 ? new Session(play.target) : await play.session(user);
  const { answer } = await session.get(`${PAGE}?${queryOf(fields)}`);
  const grant = play.model.liveGrant(user);
  if (isTurnedAway(answer, step, grant)) return;
  const scopes = scopesOf(step.scope);
  const remembered = grant !== undefined && scopes.every((scope) => covers(grant.scopes, scope));
  if (answer.status !== (remembered ? 303 : 200)) fail('a consent is not remembered as it was given', answer);
  if (/[<>"]/.test(state) && answer.body.includes(state)) fail('shows markup that it was sent', answer);
  const given = remembered ? answer : await decide(play, session, step, fields);
  if (!given) return;
  const { code } = isTold(given, { code: /^[\w-]{43}$/, state });
  const family = { grant: giveAccess(play, user, scopes, grant) };
  play.model.codes.push({ text: code!, verifier, scopes, family, made: performance.now(), used: false });
}

/** Whether the request went no further than its first answer, as it must not. */
function isTurnedAway(answer: Answer, { user, state, wrong }: Asking, grant: Grant | undefined): boolean {
  const { told } = wrong ? WRONG[wrong] : {};
  if (user === 3 && (!wrong || told !== undefined)) {
    if (answer.status !== 303 || !headerOf(answer, 'location')?.startsWith('/login?return_to='))
      fail('a stranger is not asked to sign in', answer);
    return true;
  }
  if (wrong && grant && told !== undefined) isTold(answer, { error: told, state });
  else if (wrong && (answer.status !== 400 || headerOf(answer, 'location')))
    fail(`a request with a wrong ${wrong} is not told to its user`, answer);
  return wrong !== undefined;
}

/** On the consent page, which the other replica reads; undefined: nothing is given. */
async function decide(
  play: Play,
  session: Session,
  { state, decision }: Asking,
  fields: Fields,
): Promise<Answer | undefined> {
  play.changeReplica();
  session.replica = play.replica;
  const forged: Fields = decision === 'forged' ? { form_token: 'x' } : {};
  const form = { ...fields, decision: decision === 'deny' ? 'deny' : 'allow', ...forged };
  const { answer } = await session.post(PAGE, form);
  if (decision === 'allow') return answer;
  if (decision === 'deny') isTold(answer, { error: 'access_denied', state });
  else if (answer.status !== 403) fail('a yes that another site sends counts', answer);
  return undefined;
}

/** Leads to the application with this in its address; returns all that is. */
function isTold(answer: Answer, expected: Record<string, string | RegExp>): Record<string, string> {
  const location = headerOf(answer, 'location') ?? '';
  const url = URL.canParse(location) ? new URL(location) : undefined;
  const told = Object.fromEntries(url?.searchParams ?? []);
  const right = Object.entries<string | RegExp>({ ...expected, iss: ISSUER }).every(([name, value]) =>
    typeof value === 'string' ? told[name] === value : value.test(told[name] ?? ''),
  );
  if (
    answer.status !== 303 ||
    !location.startsWith(`${CALLBACK}?`) ||
    !right ||
    'code' in told !== 'code' in expected
  )
    fail('the application is told something else', answer);
  return told;
}

function giveAccess(play: Play, user: number, scopes: string[], given: Grant | undefined): Grant {
  const grant = given ?? { user, scopes: [] };
  grant.scopes = [...new Set([...grant.scopes, ...scopes])];
  if (!given) play.model.grants.push(grant);
  return grant;
}

/** On the page that lists who may act for somebody: by themselves, or by somebody else. A token is used right before and right after. */
export async function revokeAccess(play: Play, { user, of }: Of<'revoke access'>): Promise<void> {
  if (user === 3) return;
  const path = '/user/settings/authorized-apps';
  const listed = (await (await play.session(of)).get(path)).answer;
  const id = /authorized-apps\/(\d+)\/revoke/.exec(listed.body)?.[1];
  const grant = play.model.liveGrant(of);
  if ((id !== undefined) !== (grant !== undefined)) fail('what was given is not listed', listed);
  if (!grant) return;
  const token = () => credentialsOf(play).accessTokens.findLast((one) => one.user === of);
  await useEverywhere(play, token());
  play.changeReplica();
  const { answer } = await (await play.session(user)).post(`${path}/${id}/revoke`, {});
  if (answer.status !== (user === of ? 303 : 404)) fail('revoking access is not what the model says', answer);
  if (user === of) grant.revoked = play.revocation;
  await useEverywhere(play, token());
}
