import { readFileSync } from 'node:fs';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { OperatorError } from '../errors/operator-error';
import { isBaseAddress, isWebAddress, withoutSlash } from './setting-rules';
import { SECRET_NAMES, SETTING_NAMES, Settings } from './settings';

/** `moreProblems` validates settings whose rules are defined outside this folder. */
export function loadSettings(
  env: NodeJS.ProcessEnv,
  moreProblems: (settings: Settings) => string[] = () => [],
): Settings {
  const { values, problems } = readValues(env);
  const settings = plainToInstance(Settings, values, { exposeDefaultValues: true });
  for (const { constraints } of validateSync(settings)) problems.push(...Object.values(constraints ?? {}));
  const production = settings.NODE_ENV === 'production';
  if (production && isBaseAddress(settings.JWT_ISSUER))
    settings.PUBLIC_URL ??= withoutSlash(settings.JWT_ISSUER);
  problems.push(
    ...problemsOfStorage(settings),
    ...problemsOfProvider(settings),
    ...moreProblems(settings),
    ...problemsOfIdentityHeader(settings),
    ...(production ? problemsOfProduction(settings) : []),
  );
  if (problems.length > 0)
    throw new OperatorError(['Invalid settings:', ...problems.map((line) => `  ${line}`)].join('\n'));
  settings.METRICS_PORT ??= production ? 9464 : 'off';
  settings.DRAIN_SECONDS ??= production ? 5 : 0;
  settings.DEMO_DATA ??= !production;
  return settings;
}

/** The values of the environment and of the files that it names. */
function readValues(env: NodeJS.ProcessEnv): { values: Record<string, string>; problems: string[] } {
  const values: Record<string, string> = {};
  const problems: string[] = [];
  for (const name of SETTING_NAMES) {
    const value = env[name];
    if (!value) continue;
    if (value.trim() === '') problems.push(`${name} contains only spaces: remove it to use the default`);
    else values[name] = value;
  }
  for (const name of SECRET_NAMES) {
    const file = env[`${name}_FILE`];
    if (!file) continue;
    if (values[name]) problems.push(`${name} and ${name}_FILE are both set: keep one`);
    try {
      const value = readFileSync(file, 'utf8').trim();
      // After a rotation, the list of previous peppers is empty.
      if (value !== '') values[name] = value;
      else if (name !== 'API_KEY_PEPPER_PREVIOUS') problems.push(`${name}_FILE points to an empty file`);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      problems.push(`${name}_FILE points to a file that can't be read (${code})`);
    }
  }
  return { values, problems };
}

function problemsOfIdentityHeader({ TRUSTED_IDENTITY_HEADER, TRUSTED_PROXIES, SIGN_UP }: Settings): string[] {
  if (TRUSTED_IDENTITY_HEADER === undefined) return [];
  const problems: string[] = [];
  if (TRUSTED_PROXIES === '')
    problems.push('TRUSTED_IDENTITY_HEADER requires TRUSTED_PROXIES, the proxies that send it');
  if (SIGN_UP) problems.push('SIGN_UP and TRUSTED_IDENTITY_HEADER are both set: people sign up at the store');
  return problems;
}

function problemsOfProduction({ DATABASE_URL, API_KEY_PEPPER, PUBLIC_URL }: Settings): string[] {
  const problems: string[] = [];
  if (!DATABASE_URL) problems.push('DATABASE_URL is required in production');
  if (!API_KEY_PEPPER)
    problems.push('API_KEY_PEPPER is required in production: at least 32 random characters');
  if (!PUBLIC_URL)
    problems.push('PUBLIC_URL is required in production, or an http or https URL as JWT_ISSUER');
  return problems;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

function problemsOfProvider(settings: Settings): string[] {
  const { OIDC_ISSUER, NODE_ENV, TRUSTED_IDENTITY_HEADER } = settings;
  if (OIDC_ISSUER === undefined)
    return (['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_NAME', 'OIDC_SIGN_UP', 'OIDC_ONLY'] as const)
      .filter((name) => settings[name])
      .map((name) => `${name} requires OIDC_ISSUER`);
  const problems = (['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] as const)
    .filter((name) => settings[name] === undefined)
    .map((name) => `${name} is required with OIDC_ISSUER`);
  if (isWebAddress(OIDC_ISSUER)) {
    const { protocol, hostname, search, hash, username } = new URL(OIDC_ISSUER);
    if (protocol !== 'https:' && (NODE_ENV === 'production' || !LOOPBACK.test(hostname)))
      problems.push('OIDC_ISSUER must be an https URL, except for a loopback address in development');
    if (search !== '' || hash !== '' || username !== '')
      problems.push('OIDC_ISSUER must not contain a query, a fragment or a username');
  }
  if (!settings.OIDC_SCOPES.includes('openid')) problems.push('OIDC_SCOPES must include openid');
  // Two sources of the signed-in user would need a rule for the case that they differ.
  if (TRUSTED_IDENTITY_HEADER !== undefined)
    problems.push('TRUSTED_IDENTITY_HEADER and OIDC_ISSUER are both set: keep one');
  return problems;
}

const BUCKET = [
  'FILES_S3_ENDPOINT',
  'FILES_S3_BUCKET',
  'FILES_S3_ACCESS_KEY_ID',
  'FILES_S3_SECRET_ACCESS_KEY',
] as const;

function problemsOfStorage(settings: Settings): string[] {
  const missing = BUCKET.filter((name) => settings[name] === undefined);
  if (missing.length === BUCKET.length) return [];
  const problems = missing.map((name) => `${name} is required for a bucket`);
  if (settings.FILES_DIR !== undefined) problems.push('FILES_DIR and FILES_S3_BUCKET are both set: keep one');
  return problems;
}
