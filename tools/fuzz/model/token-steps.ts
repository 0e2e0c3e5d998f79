import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { covers } from '../credentials';
import type { Answered } from '../target';
import { CALLBACK, Tenant } from '../world';
import { scopesOf } from './consent-steps';
import { oneOf } from './credential-steps';
import { type Code, endOf, type Family, type RefreshToken } from './model';
import type { Play } from './play';
import type { Of, WrongProof } from './steps';

type Fields = Record<string, string | undefined>;

const TOKEN = 'POST /oauth/token';
/** Codes live for a minute, and the answer of a refresh for ten seconds: near the end anything may be right. */
const CODE_MS = 50_000;
const RETRY_MS = 8000;
/** Knows of codes and tokens what it should not. */
const THIEF = new Tenant(1).clientId;

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
  verifier: { fields: { code_verifier: randomBytes(32).toString('base64url') }, error: 'invalid_grant' },
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
