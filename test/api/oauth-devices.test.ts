import crypto from 'node:crypto';
import { Database } from '../../src/platform/database/database';
import { lengthenWaits } from '../support/attempts';
import { signInBrowser, cookieHeaders } from '../support/browser';
import {
  application,
  browser,
  decide,
  DEVICE_GRANT,
  form,
  pkce,
  pollAgainSoon,
  oauthError,
  type Tokens,
  decisionForms,
  useOauth,
  user,
  isAccepted,
} from '../support/oauth';
import { holdLocks, untilBlocked, writeWhileLocked } from '../support/locks';
import { type Actor } from '../support/actor';
import { openApp, theApp } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useOauth();
beforeAll(lengthenWaits);

describe('the device grant', () => {
  test('RFC 8628 3.2: responds to a device', async () => {
    const client = await application();
    const { status, body } = await form('/oauth/device', { client_id: client.id, scope: 'profile:me' });
    expect(status).toBe(200);
    const { user_code, verification_uri } = body as { user_code: string; verification_uri: string };
    expect(body).toEqual({
      device_code: expect.stringMatching(/^[\w-]{43}$/) as string,
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/) as string,
      verification_uri: expect.stringMatching(/\/user\/oauth\/device$/) as string,
      verification_uri_complete: `${verification_uri}?code=${user_code}`,
      expires_in: 600,
      interval: 5,
    });
  });

  test('RFC 8628 3.1: rejects an unknown client or scope', async () => {
    const client = await application();
    expect(await form('/oauth/device', { client_id: 'nobody', scope: 'profile:me' })).toMatchObject(
      oauthError('invalid_client'),
    );
    expect(await form('/oauth/device', { client_id: client.id, scope: 'everything' })).toMatchObject(
      oauthError('invalid_scope'),
    );
    expect(await form('/oauth/device', { client_id: client.id })).toMatchObject(oauthError('invalid_scope'));
  });

  test('RFC 8628 3.3: accepts the code as people type it and asks for consent', async () => {
    const client = await application();
    const { user_code } = await client.device();
    await browser.get(`/user/oauth/device?code=${user_code.toLowerCase().replace('-', ' ')}`);
    expect(browser.words).toContain(user_code);
    expect(browser.words).toContain('See who you are');
  });

  test('RFC 8628 3.3, 5.4: requires confirmation of a code in the URL', async () => {
    const client = await application();
    const { device_code, verification_uri_complete } = await client.device();
    await browser.get(
      new URL(verification_uri_complete).pathname + new URL(verification_uri_complete).search,
    );
    expect(browser.words).toContain('Continue only if a device in front of you shows this code');
    await pollAgainSoon();
    expect((await client.poll(device_code)).body).toMatchObject({ status: 'pending' });
  });

  test('RFC 8628 3.4: returns pending, then tokens for the verifier after approval', async () => {
    const client = await application();
    const { code_verifier, code_challenge } = pkce();
    const { device_code, user_code } = await client.device({
      code_challenge,
      code_challenge_method: 'S256',
    });
    expect(await client.poll(device_code)).toMatchObject({
      status: 200,
      body: { status: 'pending', interval: 5 },
    });
    await decide(user_code, 'Allow');
    expect(browser.words).toContain('Return to your device');
    const { body } = await client.poll(device_code);
    expect(body).toEqual({ status: 'approved', code: expect.any(String) as string });
    const { code } = body as { code: string };
    expect((await client.poll(device_code)).body).toEqual(body);
    const response = await client.exchange(code, code_verifier, { redirect_uri: 'urn:example:poll' });
    expect(response.status).toBe(200);
    expect(await isAccepted((response.body as Tokens).access_token)).toBe(true);
    expect((await client.poll(device_code)).body).toEqual({ status: 'expired' });
  });

  test.each(['approved', 'polled'])('is %s after a deletion of what it refers to', async (action) => {
    const client = await application();
    const { code_challenge } = pkce();
    const challenge = { code_challenge, code_challenge_method: 'S256' };
    const { device_code, user_code } = await client.device(challenge);
    if (action === 'polled') await decide(user_code, 'Allow');
    const { query, release } = await holdLocks(
      `SELECT FROM oauth_applications WHERE client_id = '${client.id}' FOR UPDATE;
       SELECT FROM oauth_grants WHERE client_id = '${client.id}' FOR UPDATE`,
    );
    const response = action === 'polled' ? client.poll(device_code) : decide(user_code, 'Allow');
    await untilBlocked();
    await query(`SELECT FROM oauth_device_requests WHERE client_id = '${client.id}' FOR UPDATE NOWAIT`);
    await release();
    await response;
    expect((await client.poll(device_code)).body).toMatchObject({ status: 'approved' });
  });

  test('RFC 8628 3.4, 3.5: supports the same at the token endpoint', async () => {
    const client = await application();
    const { device_code, user_code } = await client.device();
    const ask = () => form('/oauth/token', { grant_type: DEVICE_GRANT, client_id: client.id, device_code });
    expect(await ask()).toMatchObject(
      oauthError('authorization_pending', 400, 'the user has not decided yet'),
    );
    await decide(user_code, 'Allow');
    const { status, body } = await ask();
    expect(status).toBe(200);
    expect(await isAccepted((body as Tokens).access_token)).toBe(true);
    expect(await ask()).toMatchObject(oauthError('expired_token'));
  });

  test('RFC 7636 4.6: rejects a device code with another verifier', async () => {
    const client = await application();
    const { code_challenge } = pkce();
    const { device_code, user_code } = await client.device({
      code_challenge,
      code_challenge_method: 'S256',
    });
    await decide(user_code, 'Allow');
    const { code } = (await client.poll(device_code)).body as { code: string };
    expect(await client.exchange(code, pkce().code_verifier)).toMatchObject(oauthError('invalid_grant'));
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 7636 4.4.1: requires S256 for a challenge, and returns no code to a poll without one', async () => {
    const client = await application();
    const { code_challenge } = pkce();
    const asked = { client_id: client.id, scope: 'profile:me', code_challenge };
    expect(await form('/oauth/device', asked)).toMatchObject(oauthError('invalid_request'));
    expect(await form('/oauth/device', { ...asked, code_challenge_method: 'plain' })).toMatchObject(
      oauthError('invalid_request'),
    );
    for (const hostile of [
      code_challenge.slice(1),
      `${code_challenge}A`,
      `!${code_challenge}`,
      '!'.repeat(43),
    ])
      expect(
        await form('/oauth/device', { ...asked, code_challenge: hostile, code_challenge_method: 'S256' }),
      ).toMatchObject(
        oauthError('invalid_request', 400, expect.stringContaining('code_challenge must be the S256')),
      );
    const { device_code, user_code } = await client.device();
    await decide(user_code, 'Allow');
    expect(await client.poll(device_code)).toMatchObject(
      oauthError('invalid_request', 400, 'without a code_challenge, use /oauth/token'),
    );
  });

  test('RFC 8628 3.5: returns access_denied when the user cancels', async () => {
    const client = await application();
    const { device_code, user_code } = await client.device();
    const other = await signInBrowser(await make.user());
    const late = await decisionForms(other, user_code);
    await decide(user_code, 'Cancel');
    expect((await browser.get(`/user/oauth/device?code=${user_code}`)).status).toBe(404);
    for (const decision of late) expect((await other.post('/user/oauth/device', decision)).status).toBe(404);
    expect((await client.poll(device_code)).body).toEqual({ status: 'denied' });
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(
      oauthError('access_denied', 400, 'the user denied access'),
    );
  });

  test('RFC 8628 3.3: approves for one of two concurrent users and grants nothing from the other', async () => {
    const client = await application();
    const { user_code } = await client.device();
    const users = [await make.user(), await make.user()];
    const browsers = await Promise.all(users.map((user) => signInBrowser(user)));
    const decisions = await Promise.all(browsers.map((one) => decisionForms(one, user_code)));
    const responses = await theApp()
      .get(Database)
      .transaction(async (db) => {
        await db.query('SELECT FROM oauth_device_requests WHERE user_code = $1 FOR UPDATE', [user_code]);
        const asked = browsers.map((one, i) => one.post('/user/oauth/device', decisions[i]![0]!));
        await untilBlocked(2);
        return asked;
      });
    expect((await Promise.all(responses)).map(({ status }) => status).sort()).toEqual([200, 404]);
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client.id])).toHaveLength(1);
  });

  test('RFC 8628 3.5: returns slow_down to a fast poll and increases the interval', async () => {
    const client = await application();
    const { device_code } = await client.device();
    await client.poll(device_code);
    const again = await client.poll(device_code);
    expect(again).toMatchObject(oauthError('slow_down', 429, 'wait 10 seconds'));
    expect(again.headers.get('retry-after')).toBe('10');
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(oauthError('slow_down', 400, 'wait 15 seconds'));
    await pollAgainSoon();
    expect((await client.poll(device_code)).body).toEqual({ status: 'pending', interval: 15 });
  });

  test('RFC 8628 3.5: rejects an expired code', async () => {
    const client = await application();
    const { device_code, user_code } = await client.device();
    const late = await decisionForms(browser, user_code);
    await sql('UPDATE oauth_device_requests SET expires_at = now()');
    for (const decision of late)
      expect((await browser.post('/user/oauth/device', decision)).status).toBe(404);
    expect((await browser.get(`/user/oauth/device?code=${user_code}`)).status).toBe(404);
    expect((await client.poll(device_code)).body).toEqual({ status: 'expired' });
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(
      oauthError('expired_token', 400, 'the device code has expired or was used'),
    );
  });

  test('RFC 8628 3.5: rejects an expired code that was approved in time', async () => {
    const client = await application();
    const { code_challenge } = pkce();
    const { device_code, user_code } = await client.device({
      code_challenge,
      code_challenge_method: 'S256',
    });
    await decide(user_code, 'Allow');
    await sql('UPDATE oauth_device_requests SET expires_at = now()');
    expect((await client.poll(device_code)).body).toEqual({ status: 'expired' });
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(oauthError('expired_token'));
  });

  test('RFC 9700 4.3.2: rejects a device code in the URL', async () => {
    const client = await application();
    const { device_code } = await client.device();
    expect(
      await form(`/oauth/device/poll?device_code=${device_code}`, { client_id: client.id }),
    ).toMatchObject(oauthError('invalid_request', 400, 'send the parameters in the body'));
  });

  test('RFC 8628 3.4: rejects an unknown device code and that of another client', async () => {
    const [client, attacker] = [await application(), await application()];
    const { device_code } = await client.device();
    expect(await attacker.poll(device_code)).toMatchObject(oauthError('invalid_grant'));
    expect(await client.poll('made-up')).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 8628 3.5: limits the interval to a minute', async () => {
    const client = await application();
    const { device_code } = await client.device();
    await client.poll(device_code);
    for (let i = 0; i < 12; i++) await client.poll(device_code);
    const { headers } = await client.poll(device_code);
    expect(headers.get('retry-after')).toBe('60');
  });

  test('RFC 8628 6.1: never assigns one code to two waiting devices', async () => {
    const client = await application();
    const letters = jest.spyOn(crypto, 'randomInt');
    for (const letter of [1, 1, 2]) for (let i = 0; i < 8; i++) letters.mockImplementationOnce(() => letter);
    const codes = [(await client.device()).user_code, (await client.device()).user_code];
    letters.mockRestore();
    expect(codes).toEqual(['CCCC-CCCC', 'DDDD-DDDD']);
  });

  test('RFC 7636 4.6: validates a device’s verifier even without a challenge', async () => {
    const client = await application();
    const { device_code, user_code } = await client.device();
    await decide(user_code, 'Allow');
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code };
    for (const code_verifier of ['short', pkce().code_verifier])
      expect(await form('/oauth/token', { ...fields, code_verifier })).toMatchObject(
        oauthError('invalid_grant'),
      );
    expect((await form('/oauth/token', fields)).status).toBe(200);
  });

  test('RFC 8628 3.3: ignores a cancellation after approval', async () => {
    const client = await application();
    const { device_code, user_code } = await client.device();
    const other = await signInBrowser(await make.user());
    const late = await decisionForms(other, user_code);
    await decide(user_code, 'Allow');
    for (const decision of late) expect((await other.post('/user/oauth/device', decision)).status).toBe(404);
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code };
    expect((await form('/oauth/token', fields)).status).toBe(200);
  });

  test('RFC 8628 5.1: limits failed attempts at codes', async () => {
    const attacker = await signInBrowser(await make.user());
    for (let i = 0; i < 5; i++)
      expect((await attacker.get('/user/oauth/device?code=BBBB-BBBB')).status).toBe(404);
    expect((await attacker.get('/user/oauth/device?code=BBBB-BBBB')).status).toBe(429);
  });

  const WRONG = '/user/oauth/device?code=BBBB-BBBB';
  const countFailures = async ({ id }: Actor) =>
    (
      await sql<{ failures: number }>('SELECT failures FROM attempts WHERE subject = sha256($1::bytea)', [
        Buffer.from(`device code by ${id}`),
      ])
    )[0]?.failures ?? 0;

  test('RFC 8628 5.1: does not reset failed attempts after a correct code', async () => {
    const attacker = await make.user();
    const attackerBrowser = await signInBrowser(attacker);
    const client = await application();
    for (let i = 0; i < 4; i++) {
      expect((await attackerBrowser.get(WRONG)).status).toBe(404);
      const { user_code } = await client.device();
      expect((await attackerBrowser.get(`/user/oauth/device?code=${user_code}`)).status).toBe(200);
      expect(await countFailures(attacker)).toBe(i + 1);
    }
    expect((await attackerBrowser.get(WRONG)).status).toBe(404);
    expect((await attackerBrowser.get(WRONG)).status).toBe(429);
    const { user_code } = await client.device();
    expect((await attackerBrowser.get(`/user/oauth/device?code=${user_code}`)).status).toBe(429);
  });

  test('RFC 8628 5.1: limits concurrent failed attempts', async () => {
    const attacker = await make.user();
    const attackerBrowser = await signInBrowser(attacker);
    const attempt = () => send('GET', WRONG, { headers: cookieHeaders(attackerBrowser) });
    // The next failure blocks.
    await sql(
      `INSERT INTO attempts (subject, failures, blocked_until, expires_at)
       VALUES (sha256($1::bytea), 10, now(), now() + interval '1 day')`,
      [Buffer.from(`device code by ${attacker.id}`)],
    );
    const attempts = Promise.all(Array.from({ length: 60 }, attempt));
    const others = Promise.all(Array.from({ length: 20 }, () => user.get('/profile')));
    expect((await others).filter(({ status }) => status !== 200)).toEqual([]);
    const statuses = (await attempts).map(({ status }) => status);
    // On a busy machine a counted attempt may fail with 503.
    expect(statuses.filter((status) => status === 404).length).toBeLessThanOrEqual(1);
    expect(await countFailures(attacker)).toBe(11);
    expect(statuses.filter((status) => status !== 404 && status !== 503 && status !== 429)).toEqual([]);
  });

  test('shows a code in two tabs that are opened at the same time', async () => {
    const viewer = await make.user();
    const viewerBrowser = await signInBrowser(viewer);
    await viewerBrowser.get(WRONG);
    const { user_code } = await (await application()).device();
    const show = () =>
      send('GET', `/user/oauth/device?code=${user_code}`, { headers: cookieHeaders(viewerBrowser) });
    const { release } = await holdLocks('SELECT FROM attempts FOR UPDATE');
    const tabs = [show(), show()];
    await untilBlocked();
    await release();
    expect((await Promise.all(tabs)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('RFC 8628 5.1: leaves connections for others while attempts wait for each other', async () => {
    const replica = await openApp({ DATABASE_POOL_SIZE: '2' });
    const url = await replica.getUrl();
    const ask = async (path: string, headers: Record<string, string>) =>
      (await fetch(url + path, { headers, redirect: 'manual' })).status;
    const attacker = await make.user();
    const attackerBrowser = await signInBrowser(attacker);
    expect((await attackerBrowser.get(WRONG)).status).toBe(404);
    const statuses = await theApp()
      .get(Database)
      .transaction(async (db) => {
        await db.query('SELECT FROM attempts WHERE subject = sha256($1::bytea) FOR UPDATE', [
          Buffer.from(`device code by ${attacker.id}`),
        ]);
        const attempts = Array.from({ length: 6 }, () => ask(WRONG, cookieHeaders(attackerBrowser)));
        await untilBlocked();
        const other = await ask('/profile', user.headers);
        return { other, attempts };
      });
    expect(statuses.other).toBe(200);
    // Those that wait for the first do so without a connection, and all but one end with 429.
    const ended = await Promise.all(statuses.attempts);
    expect(ended.filter((status) => status !== 404 && status !== 429)).toEqual([]);
    await replica.close();
  });

  test('RFC 8628 5.1: does not count an attempt that the database could not check', async () => {
    const attacker = await make.user();
    const attackerBrowser = await signInBrowser(attacker);
    await attackerBrowser.get(WRONG);
    await sql('ALTER TABLE oauth_device_requests RENAME TO away');
    for (let i = 0; i < 6; i++) expect((await attackerBrowser.get(WRONG)).status).toBe(500);
    await sql('ALTER TABLE away RENAME TO oauth_device_requests');
    expect(await countFailures(attacker)).toBe(1);
    expect((await attackerBrowser.get(WRONG)).status).toBe(404);
  });

  test('RFC 8628 5.1: accepts decisions only for codes shown in the same session', async () => {
    const client = await application();
    const [shown, guessed] = [await client.device(), await client.device()];
    const [victim, attacker] = [
      await signInBrowser(await make.user()),
      await signInBrowser(await make.user()),
    ];
    const [yes, no] = await decisionForms(victim, shown.user_code);
    const [stolen] = await decisionForms(attacker, guessed.user_code);
    await victim.get(`/user/oauth/device?code=${shown.user_code}`);
    for (const decision of [
      { ...yes, code: guessed.user_code },
      { ...no, code: guessed.user_code },
      { ...yes, shown: '' },
      { ...yes, shown: stolen!.shown!, code: guessed.user_code },
    ])
      expect((await victim.post('/user/oauth/device', decision)).status).toBe(403);
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client.id])).toEqual([]);
    for (const { device_code } of [shown, guessed])
      expect((await client.poll(device_code)).body).toMatchObject({ status: 'pending' });
    expect((await victim.post('/user/oauth/device', yes!)).status).toBe(200);
  });

  test('RFC 8628 5.4: tells the second of two users with one code that it was used', async () => {
    const client = await application();
    const { device_code, user_code } = await client.device();
    const [one, other] = [await signInBrowser(await make.user()), await signInBrowser(await make.user())];
    const [[first], [second]] = [await decisionForms(one, user_code), await decisionForms(other, user_code)];
    expect((await one.post('/user/oauth/device', first!)).status).toBe(200);
    expect((await other.post('/user/oauth/device', second!)).status).toBe(404);
    expect(other.words).toContain('This code has expired or was already used.');
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client.id])).toHaveLength(1);
    expect(
      (await form('/oauth/token', { grant_type: DEVICE_GRANT, client_id: client.id, device_code })).status,
    ).toBe(200);
  });

  test('RFC 8628 5.1: ignores a decision from another site', async () => {
    const { user_code } = await (await application()).device();
    expect((await browser.post('/user/oauth/device', { code: user_code, decision: 'allow' })).status).toBe(
      403,
    );
  });

  test('RFC 8628 3.3: does not let another user change a decision', async () => {
    const client = await application();
    const { device_code, user_code } = await client.device();
    await decide(user_code, 'Allow');
    const other = await signInBrowser(await make.user());
    expect((await other.get(`/user/oauth/device?code=${user_code}`)).status).toBe(404);
    const { body } = await form('/oauth/token', {
      grant_type: DEVICE_GRANT,
      client_id: client.id,
      device_code,
    });
    expect((body as Tokens).key.user_id).toBe(user.id);
  });

  test('polls for one code that wait for a lock delay no write of another user', async () => {
    const client = await application();
    const { device_code } = await client.device();
    const lock = `SELECT FROM oauth_device_requests WHERE client_id = '${client.id}' FOR UPDATE`;
    expect(await writeWhileLocked(lock, () => client.poll(device_code))).toBe(200);
  });
});
