import { Audit } from '../../src/audit/audit';
import { signInBrowser } from '../support/browser';
import { holdLocks, untilBlocked } from '../support/locks';
import {
  ACCESS,
  authorizePath,
  authorize,
  application,
  APPS,
  browser,
  CALLBACK,
  decide,
  parseFragment,
  oauthError,
  type Tokens,
  useOauth,
  user,
  isAccepted,
  OauthClient,
} from '../support/oauth';
import { logged, theApp } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useOauth();

describe('consent', () => {
  test('is stored: the second time redirects at once, and each is logged', async () => {
    const client = await application();
    await authorize(client.tokenRequest());
    const { status, location } = await browser.get(authorizePath(client.tokenRequest()));
    expect(status).toBe(303);
    expect(parseFragment(location).access_token).toMatch(/^gw_/);
    const events = () =>
      sql(
        `SELECT event, user_id, details->'scopes' AS scopes FROM audit_events
         WHERE details->>'client_id' = $1 ORDER BY id`,
        [client.id],
      );
    await theApp().get(Audit).flush();
    expect(await events()).toEqual([{ event: 'grant.created', user_id: user.id, scopes: ['profile:me'] }]);
    // The event isn't stored, to avoid a row for each request.
    const reused = logged.map((line) => line.trim()).find((line) => line.includes('"event":"grant.reused"'));
    expect(JSON.parse(reused!)).toMatchObject({
      user_id: user.id,
      client_id: client.id,
      scopes: ['profile:me'],
    });
  });

  test('stores the newest codes, because a stored consent issues one for each request', async () => {
    const client = await application();
    const oldest = await client.codeFor();
    await sql(
      `INSERT INTO oauth_codes (code_hash, grant_id, scopes, family_id, expires_at)
       SELECT sha256(n::text::bytea), id, scopes, gen_random_uuid(), now() + interval '60 seconds'
       FROM oauth_grants, generate_series(1, 99) n WHERE client_id = $1`,
      [client.id],
    );
    const newest = await client.codeFor();
    expect(
      await sql(
        'SELECT count(*)::int AS codes FROM oauth_codes c JOIN oauth_grants g ON g.id = grant_id WHERE client_id = $1',
        [client.id],
      ),
    ).toEqual([{ codes: 100 }]);
    expect(await client.exchange(newest.code, newest.code_verifier)).toMatchObject({ status: 200 });
    expect(await client.exchange(oldest.code, oldest.code_verifier)).toMatchObject(
      oauthError('invalid_grant'),
    );
  });

  test('RFC 6749 3.3: is requested again for more scopes, which are marked as new', async () => {
    const client = await application();
    await authorize(client.tokenRequest());
    const { status } = await browser.get(
      authorizePath(client.tokenRequest({ scope: 'profile:me profile:games' })),
    );
    expect(status).toBe(200);
    expect(browser.words).toMatch(/See the games you uploaded[^.]* New/);
    const { location } = await browser.submit('/user/oauth', {}, 'Allow');
    expect(parseFragment(location).scope).toBe('profile:games profile:me');
    expect((await browser.get(authorizePath(client.tokenRequest({ scope: 'profile:games' })))).status).toBe(
      303,
    );
  });

  test('RFC 8252 8.6: is requested again where another program could intercept the redirect URI', async () => {
    const redirect_uri = 'com.example.game:/callback';
    const client = await application({ redirect_uris: [redirect_uri] });
    await authorize(client.tokenRequest({ redirect_uri }));
    expect((await browser.get(authorizePath(client.tokenRequest({ redirect_uri })))).status).toBe(200);
  });

  test('applies to one user only', async () => {
    const client = await application();
    await authorize(client.tokenRequest());
    const other = await signInBrowser(await make.user());
    expect((await other.get(authorizePath(client.tokenRequest()))).status).toBe(200);
  });
});

describe('revoking access', () => {
  const revoke = async () => {
    await browser.get(ACCESS);
    const path = /href="(\/user\/settings\/authorized-apps\/\d+\/revoke)"/.exec(browser.page.text)![1]!;
    await browser.get(path);
    const confirmed = browser.formFields(path);
    expect((await browser.post(path, confirmed)).status).toBe(303);
    expect((await browser.get(path)).status).toBe(404);
    expect((await browser.post(path, confirmed)).status).toBe(404);
  };

  test('RFC 9700 4.14.2: revokes every token of a grant at once', async () => {
    const client = await application();
    const tokens = await client.tokensFor();
    const { access_token } = parseFragment(await authorize(client.tokenRequest()));
    const waiting = await client.codeFor();
    const { device_code, user_code } = await client.device();
    await decide(user_code, 'Allow');
    expect(await isAccepted(tokens.access_token)).toBe(true);
    await revoke();
    expect(await isAccepted(tokens.access_token)).toBe(false);
    expect(await isAccepted(access_token!)).toBe(false);
    expect(await client.refresh(tokens.refresh_token)).toMatchObject(oauthError('invalid_grant'));
    expect(
      await sql(
        'SELECT FROM oauth_refresh_tokens JOIN oauth_grants g ON g.id = grant_id WHERE client_id = $1',
        [client.id],
      ),
    ).toEqual([]);
    expect(await client.exchange(waiting.code, waiting.code_verifier)).toMatchObject(
      oauthError('invalid_grant'),
    );
    expect((await client.poll(device_code)).body).toEqual({ status: 'denied' });
    expect((await browser.get(authorizePath(client.tokenRequest()))).status).toBe(200);
  });

  test('RFC 6749 10.3: leaves no valid token after a concurrent exchange', async () => {
    const client = await application();
    for (let round = 0; round < 5; round++) {
      const { code, code_verifier } = await client.codeFor();
      await browser.get(ACCESS);
      const path = /href="(\/user\/settings\/authorized-apps\/\d+\/revoke)"/.exec(browser.page.text)![1]!;
      await browser.get(path);
      const [{ body }] = await Promise.all([client.exchange(code, code_verifier), browser.submit(path)]);
      const { access_token } = body as Partial<Tokens>;
      if (access_token) expect(await isAccepted(access_token)).toBe(false);
    }
  });

  test('is not undone by a request of the app that arrives at the same time', async () => {
    const client = await application();
    await authorize(client.tokenRequest());
    const { commit } = await holdLocks(
      `UPDATE oauth_grants SET revoked_at = now() WHERE client_id = '${client.id}'`,
    );
    const requested = browser.get(authorizePath(client.tokenRequest()));
    await untilBlocked();
    await commit();
    expect((await requested).status).toBe(200);
    expect(browser.words).toContain('to act on your behalf?');
    expect(
      await sql('SELECT FROM oauth_grants WHERE client_id = $1 AND revoked_at IS NULL', [client.id]),
    ).toEqual([]);
  });

  test('shows each app with its scopes and date, only to its user', async () => {
    const client = await application();
    const { access_token } = await client.tokensFor();
    await browser.get(ACCESS);
    expect(browser.words).toContain('See who you are Since');
    const path = /href="(\/user\/settings\/authorized-apps\/\d+\/revoke)"/.exec(browser.page.text)![1]!;
    const other = await signInBrowser(await make.user());
    expect((await other.get(path)).status).toBe(404);
    await other.get('/user/settings/api-keys/new');
    const { form_token } = other.formFields('/user/settings/api-keys');
    expect((await other.post(path, { form_token: form_token! })).status).toBe(404);
    expect(await isAccepted(access_token)).toBe(true);
  });

  test('grants nothing to an app that is being deleted', async () => {
    const client = await application();
    await browser.get(authorizePath(client.tokenRequest()));
    const { commit } = await holdLocks(`DELETE FROM oauth_applications WHERE client_id = '${client.id}'`);
    const allowed = browser.submit('/user/oauth', {}, 'Allow');
    await untilBlocked();
    await commit();
    await allowed;
    expect(browser.page.status).toBe(404);
  });

  test('revokes tokens of an app whose developer is deleted', async () => {
    const client = await application();
    const { access_token } = await client.tokensFor();
    const { access_token: implicit } = parseFragment(await authorize(client.tokenRequest()));
    expect([await isAccepted(access_token), await isAccepted(implicit!)]).toEqual([true, true]);
    await sql('DELETE FROM users WHERE id = (SELECT user_id FROM oauth_applications WHERE client_id = $1)', [
      client.id,
    ]);
    await until(async () => !(await isAccepted(access_token)) && !(await isAccepted(implicit!)));
  });

  test('revokes tokens of a deleted app', async () => {
    const owner = await make.user();
    const mine = await signInBrowser(owner);
    await mine.get(`${APPS}/new`);
    await mine.submit(APPS, { name: 'Short-lived', redirect_uris: CALLBACK });
    const client = new OauthClient(decodeURIComponent(mine.page.location!.split('/').at(-1)!));
    const { access_token, refresh_token } = await client.tokensFor();
    await mine.get(`${APPS}/${client.id}/delete`);
    await mine.submit(`${APPS}/${client.id}/delete`);
    expect(await isAccepted(access_token)).toBe(false);
    expect(await client.refresh(refresh_token)).toMatchObject(oauthError('invalid_client'));
    expect((await browser.get(authorizePath(client.tokenRequest()))).status).toBe(400);
  });
});
