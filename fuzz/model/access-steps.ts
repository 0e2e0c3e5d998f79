import { createHash, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { pairsOf } from '../ask';
import { type Answer, headerOf } from '../client';
import { covers } from '../credentials';
import { excerpt, Finding } from '../oracles';
import { Session } from '../session';
import type { Answered } from '../target';
import { CALLBACK, Tenant } from '../world';
import { credentialsOf, oneOf, useEverywhere } from './credential-steps';
import { type Code, endOf, type Family, type Grant, type RefreshToken } from './model';
import type { Play } from './play';
import type { Of, WrongAsking, WrongProof } from './steps';

type Fields = Record<string, string | undefined>;

const ISSUER = 'http://127.0.0.1';
const ASK = '/user/oauth';
const TOKEN = 'POST /oauth/token';
/** Codes live for a minute, and the answer of a refresh for ten seconds: near the end anything may be right. */
const CODE_MS = 50_000;
const RETRY_MS = 8000;
/** Knows of codes and tokens what it should not. */
const THIEF = new Tenant(1).clientId;

const secret = () => randomBytes(32).toString('base64url');
const scopesOf = (list: string) => [...new Set(list.split(' '))].sort();

/** What is wrong with an authorization request, and what the application is told; nothing where its user is. */
const WRONG: Record<WrongAsking, { fields: Fields; told?: string }> = {
  client: { fields: { client_id: 'nobody' } },
  address: { fields: { redirect_uri: `${CALLBACK}/../evil` } },
  scope: { fields: { scope: 'profile:me game:view' } },
  response: { fields: { response_type: 'id_token' }, told: 'unsupported_response_type' },
  challenge: { fields: { code_challenge: undefined }, told: 'invalid_request' },
  method: { fields: { code_challenge_method: 'plain' }, told: 'invalid_request' },
};

const fail = (what: string, answer: Answer): never => {
  throw new Finding('model', what, excerpt(answer));
};

/** Asks on the consent page, as who has no password without being signed in. */
export async function askAccess(play: Play, step: Of<'ask access'>): Promise<void> {
  const { user, decision, wrong } = step;
  const { clientId } = play.tenant;
  const verifier = secret();
  const { fields: mistakes, told } = wrong ? WRONG[wrong] : { fields: {} };
  const given: Fields = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: CALLBACK,
    scope: step.scope,
    state: step.state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...mistakes,
  };
  const fields = Object.fromEntries(
    Object.entries(given).filter((field): field is [string, string] => field[1] !== undefined),
  );
  const query = pairsOf(Object.entries(fields).map(([name, value]) => ({ name, value, place: 'query' })));
  const session = user === 3 ? new Session(play.target) : await play.session(user);
  let { answer } = await session.get(`${ASK}?${query}`);
  if (wrong && told === undefined) {
    if (answer.status !== 400 || headerOf(answer, 'location'))
      fail(`a request with a wrong ${wrong} is not told to its user`, answer);
    return;
  }
  if (user === 3) {
    if (answer.status !== 303 || !headerOf(answer, 'location')?.startsWith('/login?return_to='))
      fail('a stranger is not asked to sign in', answer);
    return;
  }
  if (told !== undefined) {
    isTold(answer, { error: told, state: step.state });
    return;
  }
  const scopes = scopesOf(step.scope);
  const grant = play.model.liveGrant(user);
  const remembered = grant !== undefined && scopes.every((scope) => covers(grant.scopes, scope));
  if (answer.status !== (remembered ? 303 : 200)) fail('a consent is not remembered as it was given', answer);
  if (!remembered) {
    if (answer.body.includes(step.state) && /[<>"]/.test(step.state))
      fail('shows markup it was sent', answer);
    play.changeReplica();
    session.replica = play.replica;
    const form = { ...fields, decision: decision === 'deny' ? 'deny' : 'allow' };
    ({ answer } = await session.post(ASK, decision === 'forged' ? { ...form, form_token: 'x' } : form));
    if (decision === 'forged') {
      if (answer.status !== 403) fail('a yes that another site sends counts', answer);
      return;
    }
    if (decision === 'deny') {
      isTold(answer, { error: 'access_denied', state: step.state });
      return;
    }
  }
  const { code } = isTold(answer, { code: /^[\w-]{43}$/, state: step.state });
  const family: Family = { grant: giveAccess(play, user, scopes, grant) };
  play.model.codes.push({ text: code!, verifier, scopes, family, made: performance.now(), used: false });
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
  if (given) {
    given.scopes = [...new Set([...given.scopes, ...scopes])];
    return given;
  }
  const grant: Grant = { user, scopes };
  play.model.grants.push(grant);
  return grant;
}

function isRefused(play: Play, answered: Answered, error: string): void {
  const given = answered.json as { error?: string };
  if (answered.answer.status !== 400 || given.error !== error)
    play.fail(TOKEN, 'is not refused', answered, error);
}

/** Tokens that were made, as a client is told of them. */
function isGiven(
  play: Play,
  answered: Answered,
  scopes: string[],
  family: Family,
  refreshable: string[],
): RefreshToken {
  const { access_token, refresh_token, key } = answered.json as {
    access_token: string;
    refresh_token: string;
    key?: { id: number };
  };
  const { user } = family.grant;
  const expected = {
    access_token,
    token_type: 'bearer',
    expires_in: 3600,
    refresh_token,
    scope: scopes.join(' '),
    key: { id: key?.id, user_id: play.tenant.user(user), key: access_token },
  };
  if (answered.answer.status !== 200 || !isDeepStrictEqual(answered.json, expected))
    play.fail(TOKEN, 'does not give these tokens', answered, expected);
  play.model.accessTokens.push({ text: access_token, user, scopes, family });
  const token: RefreshToken = { text: refresh_token, scopes: refreshable, family };
  play.model.refreshTokens.push(token);
  return token;
}

const WRONG_PROOF: Record<WrongProof, { fields: Fields; error: string }> = {
  client: { fields: { client_id: THIEF }, error: 'invalid_grant' },
  stranger: { fields: { client_id: 'nobody' }, error: 'invalid_client' },
  verifier: { fields: { code_verifier: secret() }, error: 'invalid_grant' },
  'no verifier': { fields: { code_verifier: undefined }, error: 'invalid_request' },
  address: { fields: { redirect_uri: `${CALLBACK}/` }, error: 'invalid_grant' },
};

export async function exchange(
  play: Play,
  { user, place, code: index, wrong }: Of<'exchange'>,
): Promise<void> {
  const code = oneOf(play.model.codes, index);
  if (!code || performance.now() - code.made > CODE_MS) return;
  const mistake = wrong && WRONG_PROOF[wrong];
  const fields: Fields = {
    grant_type: 'authorization_code',
    client_id: play.tenant.clientId,
    code: code.text,
    code_verifier: code.verifier,
    redirect_uri: CALLBACK,
    ...mistake?.fields,
  };
  const answered = await play.call({ user, operation: TOKEN, fields, place });
  const error = place === 'query' ? 'invalid_request' : refusalOf(play, code, wrong);
  if (error !== undefined) {
    isRefused(play, answered, error);
    return;
  }
  code.used = true;
  isGiven(play, answered, code.scopes, code.family, code.scopes);
}

/** A code that comes again, with whatever proof, was seen by somebody else: what it was exchanged for ends. */
function refusalOf(play: Play, { family, used }: Code, wrong: WrongProof | undefined): string | undefined {
  const comesAgain = wrong === undefined || wrong === 'verifier' || wrong === 'address';
  if (used && comesAgain && !endOf(family)) family.ended = play.revocation;
  if (wrong) return WRONG_PROOF[wrong].error;
  return used || endOf(family) ? 'invalid_grant' : undefined;
}

export async function refresh(
  play: Play,
  { user, place, token: index, scope, wrong }: Of<'refresh'>,
): Promise<void> {
  const token = oneOf(play.model.refreshTokens, index);
  if (!token) return;
  const { family, used } = token;
  // Asked again soon, it is a retry of who lost the answer.
  const retried = used !== undefined && used.next.used === undefined;
  if (retried && performance.now() - used.at > RETRY_MS) return;
  const fields: Fields = {
    grant_type: 'refresh_token',
    client_id: wrong ? THIEF : play.tenant.clientId,
    refresh_token: token.text,
    scope,
  };
  const answered = await play.call({ user, operation: TOKEN, fields, place });
  const asked = scope === undefined ? token.scopes : scopesOf(scope);
  if (place === 'query') isRefused(play, answered, 'invalid_request');
  else if (wrong || endOf(family)) isRefused(play, answered, 'invalid_grant');
  else if (retried) {
    if (answered.answer.body !== used.answer)
      play.fail(TOKEN, 'answers a retry otherwise', answered, used.answer);
  } else if (used) {
    isRefused(play, answered, 'invalid_grant');
    family.ended = play.revocation;
  } else if (!asked.every((one) => covers(token.scopes, one))) isRefused(play, answered, 'invalid_scope');
  else {
    const next = isGiven(play, answered, asked, family, token.scopes);
    token.used = { at: performance.now(), answer: answered.answer.body, next };
  }
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
