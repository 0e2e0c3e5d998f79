import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { problemsOfManifestScopes } from '../../src/auth/access/scopes';
import { loadSettings } from '../../src/platform/config/load-settings';
import { SETTING_NAMES } from '../../src/platform/config/settings';

const settingsProblems = (env: NodeJS.ProcessEnv): string[] => {
  try {
    loadSettings(env, problemsOfManifestScopes);
    return [];
  } catch (error) {
    return (error as Error).message
      .split('\n')
      .slice(1)
      .map((line) => line.trim());
  }
};

test('lists all problems at once', () => {
  expect(
    settingsProblems({
      PORT: 'http',
      STORE_URL: 'somewhere',
      LENIENT_CLIENTS: 'perhaps',
      OPERATOR_TOKEN: 'short',
    }),
  ).toEqual([
    'PORT must be a whole number from 0 to 65535',
    'STORE_URL must be an http or https URL',
    'LENIENT_CLIENTS must be true or false',
    'OPERATOR_TOKEN must be longer than or equal to 16 characters',
  ]);
});

test('lists invalid scopes, files, keys and headers with the other problems', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const broken = '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----';
  const keys = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  const problem =
    'SIGNING_KEYS must contain Ed25519 private keys in PEM format, from `openssl genpkey -algorithm ed25519`';
  for (const SIGNING_KEYS of [broken, keys, '-----BEGIN PRIVATE KEY-----', 'nonsense'])
    expect(
      settingsProblems({
        SIGNING_KEYS,
        JWT_LIFETIME: '5',
        MANIFEST_SCOPES: 'profile:me everything toString',
        STORE_CSS_FILE: 'nowhere.css',
        STORE_LOGO_FILE: 'docs',
        TRUSTED_IDENTITY_HEADER: 'X-Store-User',
      }),
    ).toEqual([
      'STORE_LOGO_FILE must be a file that ends in .svg, .png, .webp, .jpg, .jpeg',
      'STORE_LOGO_FILE must be a readable file',
      'STORE_CSS_FILE must be a readable file',
      problem,
      'JWT_LIFETIME must be a whole number from 60 to 86400',
      'MANIFEST_SCOPES has unknown scopes: everything, toString. `gamewharf scopes` lists all scopes.',
      'TRUSTED_IDENTITY_HEADER requires TRUSTED_PROXIES, the proxies that send it',
    ]);
});

test('rejects a created operator token as OPERATOR_TOKEN, which has all permissions', () => {
  expect(settingsProblems({ OPERATOR_TOKEN: `gwo_${'a'.repeat(38)}` })).toEqual([
    'OPERATOR_TOKEN must not begin with gwo_: use the tokens of `operator-tokens create` directly in your programs',
  ]);
});

describe('an identity provider', () => {
  const provider = {
    OIDC_ISSUER: 'https://id.example.com/realms/store',
    OIDC_CLIENT_ID: 'gamewharf',
    OIDC_CLIENT_SECRET: 'secret',
  };

  test('needs an ID and a secret, and an https issuer', () => {
    expect(settingsProblems(provider)).toEqual([]);
    expect(settingsProblems({ OIDC_ISSUER: provider.OIDC_ISSUER })).toEqual([
      'OIDC_CLIENT_ID is required with OIDC_ISSUER',
      'OIDC_CLIENT_SECRET is required with OIDC_ISSUER',
    ]);
    expect(settingsProblems({ OIDC_ONLY: 'true', OIDC_CLIENT_ID: 'x' })).toEqual([
      'OIDC_CLIENT_ID requires OIDC_ISSUER',
      'OIDC_ONLY requires OIDC_ISSUER',
    ]);
    const insecure = 'OIDC_ISSUER must be an https URL, except for a loopback address in development';
    expect(settingsProblems({ ...provider, OIDC_ISSUER: 'http://id.example.com' })).toEqual([insecure]);
    expect(settingsProblems({ ...provider, OIDC_ISSUER: 'http://127.0.0.1:8081' })).toEqual([]);
    expect(settingsProblems({ ...production, ...provider, OIDC_ISSUER: 'http://127.0.0.1:8081' })).toEqual([
      insecure,
    ]);
    expect(settingsProblems({ ...provider, OIDC_ISSUER: 'https://id.example.com/?tenant=1' })).toEqual([
      'OIDC_ISSUER must not contain a query, a fragment or a username',
    ]);
    expect(settingsProblems({ ...provider, OIDC_SCOPES: 'email' })).toEqual([
      'OIDC_SCOPES must include openid',
    ]);
  });

  test('excludes a header that names the user', () => {
    expect(
      settingsProblems({ ...provider, TRUSTED_IDENTITY_HEADER: 'X-User', TRUSTED_PROXIES: '10.0.0.0/8' }),
    ).toEqual(['TRUSTED_IDENTITY_HEADER and OIDC_ISSUER are both set: keep one']);
  });
});

test('requires a database and secrets in production', () => {
  expect(settingsProblems({ NODE_ENV: 'production' })).toEqual([
    'DATABASE_URL is required in production',
    'API_KEY_PEPPER is required in production: at least 32 random characters',
    'PUBLIC_URL is required in production, or an http or https URL as JWT_ISSUER',
  ]);
});

const production = {
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://db/store',
  API_KEY_PEPPER: 'x'.repeat(32),
  PUBLIC_URL: 'https://api.store.example',
};

test("accepts a URL as JWT_ISSUER for the service's URL in production", () => {
  const { PUBLIC_URL: _, ...unaddressed } = production;
  const issuedBy = (JWT_ISSUER: string) => ({ ...unaddressed, JWT_ISSUER });
  expect(settingsProblems(production)).toEqual([]);
  expect(settingsProblems(issuedBy('wharf'))).toEqual([expect.stringContaining('PUBLIC_URL is required')]);
  expect(loadSettings(issuedBy('https://api.store.example/')).PUBLIC_URL).toBe('https://api.store.example');
  expect(loadSettings({ ...production, JWT_ISSUER: 'https://other.example' }).PUBLIC_URL).toBe(
    'https://api.store.example',
  );
});

test('removes a trailing slash from URLs', () => {
  expect(loadSettings({ PUBLIC_URL: 'https://api.store.example//' }).PUBLIC_URL).toBe(
    'https://api.store.example',
  );
});

test('rejects cover origins that are not origins or would end a Content-Security-Policy directive', () => {
  const origins = (COVER_ORIGINS: string) => loadSettings({ COVER_ORIGINS }).COVER_ORIGINS;
  expect(origins('')).toEqual([]);
  expect(origins('https://cdn.example.com, http://127.0.0.1:8080')).toEqual([
    'https://cdn.example.com',
    'http://127.0.0.1:8080',
  ]);
  for (const wrong of ['cdn.example.com', 'https://cdn.example.com/', "https://a;script-src 'self'", '*'])
    expect(settingsProblems({ COVER_ORIGINS: wrong })).toEqual([
      'COVER_ORIGINS must be origins such as https://cdn.example.com',
    ]);
});

test('rejects values of only spaces', () => {
  expect(settingsProblems({ HOST: ' ', RATE_LIMIT: '\t' })).toEqual([
    'HOST contains only spaces: remove it to use the default',
    'RATE_LIMIT contains only spaces: remove it to use the default',
  ]);
});

test('rejects URLs of servers that cannot be parsed, without repeating a password', () => {
  for (const url of [
    'postgres://store:secret@db:99999/store',
    'postgres://store:50%off@db/store',
    'postgres://store:p@ss#1@db/store',
    'redis://db/0',
  ])
    expect(settingsProblems({ DATABASE_URL: url })).toEqual([
      'DATABASE_URL must be a URL that starts with postgresql:// or postgres://, with special characters of the password percent-encoded',
    ]);
  expect(settingsProblems({ REDIS_URL: 'redis://:secret@redis:99999' })).toEqual([
    'REDIS_URL must be a URL that starts with redis:// or rediss://, with special characters of the password percent-encoded',
  ]);
  for (const DATABASE_URL of [
    'postgres:///store?host=/run/postgresql',
    'postgres://store@%2Frun%2Fpostgresql:5432/store',
    'postgresql://store:p%40ss%231@[::1]:5432/store?sslmode=verify-full',
  ])
    expect(settingsProblems({ DATABASE_URL })).toEqual([]);
});

test('accepts a URL of a database with a user and a socket, but no host', () => {
  const { DATABASE_URL } = loadSettings({
    DATABASE_URL: 'postgres://store:p%40ss@/store?host=/run/postgresql',
  });
  expect(new Client(DATABASE_URL)).toMatchObject({
    user: 'store',
    password: 'p@ss',
    host: '/run/postgresql',
    database: 'store',
  });
});

test('rejects URLs to which no path can be appended', () => {
  for (const url of [
    'https://api.store.example/?a=1',
    'https://api.store.example#a',
    'https://a:b@c.example',
  ])
    expect(settingsProblems({ PUBLIC_URL: url })).toEqual([
      'PUBLIC_URL must be an http or https URL without a username, query or fragment',
    ]);
});

test('accepts common words for booleans', () => {
  expect(loadSettings({ LENIENT_CLIENTS: 'YES' }).LENIENT_CLIENTS).toBe(true);
  expect(loadSettings({ LENIENT_CLIENTS: '0' }).LENIENT_CLIENTS).toBe(false);
});

test('loads demo data by default, except in production', () => {
  expect(loadSettings({}).DEMO_DATA).toBe(true);
  expect(loadSettings({ DEMO_DATA: 'false' }).DEMO_DATA).toBe(false);
  expect(loadSettings(production).DEMO_DATA).toBe(false);
});

describe('a secret in a file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gamewharf-'));
    writeFileSync(join(folder, 'token'), 'a secret from a file\n');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('is read without its final line break', () => {
    expect(loadSettings({ OPERATOR_TOKEN_FILE: join(folder, 'token') }).OPERATOR_TOKEN).toBe(
      'a secret from a file',
    );
  });

  test('is rejected if it is also set directly, and a missing file is reported with its setting', () => {
    expect(
      settingsProblems({ OPERATOR_TOKEN: 'x'.repeat(16), OPERATOR_TOKEN_FILE: join(folder, 'token') }),
    ).toEqual(['OPERATOR_TOKEN and OPERATOR_TOKEN_FILE are both set: keep one']);
    expect(settingsProblems({ OPERATOR_TOKEN_FILE: join(folder, 'nothing') })).toEqual([
      "OPERATOR_TOKEN_FILE points to a file that can't be read (ENOENT)",
    ]);
  });

  test('is rejected if it is empty, except for a list', () => {
    const file = join(folder, 'empty');
    writeFileSync(file, '\n');
    expect(settingsProblems({ OIDC_CLIENT_SECRET_FILE: file, API_KEY_PEPPER_PREVIOUS_FILE: file })).toEqual([
      'OIDC_CLIENT_SECRET_FILE points to an empty file',
    ]);
  });
});

test('.env.example lists exactly the settings', () => {
  const named = [...readFileSync('.env.example', 'utf8').matchAll(/^([A-Z0-9_]+)=/gm)].map(
    ([, name]) => name,
  );
  expect(named.toSorted()).toEqual(SETTING_NAMES.toSorted());
});

test('.env.example is valid as it is', () => {
  const values = [...readFileSync('.env.example', 'utf8').matchAll(/^([A-Z0-9_]+)=(.*)$/gm)];
  expect(settingsProblems(Object.fromEntries(values.map(([, name, value]) => [name, value])))).toEqual([]);
});
