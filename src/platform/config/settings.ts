import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import { applyDecorators } from '@nestjs/common';
import { plainToInstance, Transform } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsOptional,
  IsUrl,
  isURL,
  Matches,
  MaxLength,
  MinLength,
  ValidateBy,
  validateSync,
} from 'class-validator';
import { OperatorError } from '../errors/operator-error';
import { parseAddressRanges, isAddressRange } from './address-ranges';
import { parsePrivateKeys } from './private-keys';
import { parseRateLimits } from './rate-limits';

/** Reads a text from the environment. An unparsable text stays unchanged, so that the validator reports it. */
const Read = (read: (text: string) => unknown) =>
  Transform(({ value }) => (typeof value === 'string' ? read(value) : (value as unknown)));
const Satisfies = (name: string, validate: (value: unknown) => boolean, rule: string) =>
  ValidateBy({ name, validator: { validate } }, { message: `$property must ${rule}` });

const yesOrNo = (text: string) =>
  /^(true|1|yes|on)$/i.test(text) || (/^(false|0|no|off)$/i.test(text) ? false : text);
const wholeNumber = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text);
const isWithin = (value: unknown, min: number, max: number) =>
  Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
const MAX_PORT = 65_535;
const WEB_ADDRESS = { require_tld: false, require_protocol: true, protocols: ['http', 'https'] };
const isWebAddress = (text?: string): text is string => isURL(text ?? '', WEB_ADDRESS);
const withoutSlash = (address: string) => address.replace(/\/+$/, '');

const YesOrNo = () =>
  applyDecorators(Read(yesOrNo), IsBoolean({ message: '$property must be true or false' }));
const WholeNumber = (min: number, max: number) =>
  applyDecorators(
    Read(wholeNumber),
    Satisfies('wholeNumber', (value) => isWithin(value, min, max), `be a whole number from ${min} to ${max}`),
  );
const SplitAt = (separator: RegExp) => Read((text) => text.split(separator).filter((part) => part !== ''));
const IsWebAddress = () => IsUrl(WEB_ADDRESS, { message: '$property must be an http or https URL' });

/** The formats of images that pages can show. */
export const LOGO_EXTENSIONS = ['.svg', '.png', '.webp', '.jpg', '.jpeg'] as const;

const canRead = (file: string) => {
  try {
    accessSync(file, constants.R_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
};
const ReadableFile = (extensions: readonly string[]) =>
  applyDecorators(
    Satisfies(
      'extension',
      (file) => extensions.includes(extname(String(file)).toLowerCase()),
      `be a file that ends in ${extensions.join(', ')}`,
    ),
    Satisfies('readableFile', (file) => canRead(String(file)), 'be a readable file'),
  );

export const DEFAULT_STORE_URL = 'https://gamewharf.example';

/**
 * All settings, each from the environment variable of the same name. Nothing else reads the environment. A setting
 * without a decorator accepts any text.
 */
export class Settings {
  @IsIn(['development', 'test', 'production'])
  NODE_ENV: 'development' | 'test' | 'production' = 'development';

  @WholeNumber(0, MAX_PORT) PORT: number = 3000;

  HOST: string = '127.0.0.1';

  @IsOptional()
  @Matches(/^postgres(ql)?:\/\//, { message: '$property must start with postgresql:// or postgres://' })
  DATABASE_URL?: string = undefined;

  @WholeNumber(1, 1000) DATABASE_POOL_SIZE: number = 10;

  // Disable behind a pooler that does not track prepared statements.
  @YesOrNo() DATABASE_PREPARED_STATEMENTS: boolean = true;

  DATA_DIR: string = '.data';

  // Default: true, in production false.
  @IsOptional()
  @YesOrNo()
  DEMO_DATA?: boolean = undefined;

  @IsWebAddress() STORE_URL: string = DEFAULT_STORE_URL;

  // Required in production unless JWT_ISSUER replaces it. Default: http://HOST:PORT.
  @IsOptional()
  @Read(withoutSlash)
  @IsWebAddress()
  PUBLIC_URL?: string = undefined;

  // The store's name and look on the account pages.
  STORE_NAME: string = 'Gamewharf';

  @IsOptional() @ReadableFile(LOGO_EXTENSIONS) STORE_LOGO_FILE?: string = undefined;

  @IsOptional() @ReadableFile(['.css']) STORE_CSS_FILE?: string = undefined;

  // Other hosts whose game covers the account pages load.
  @SplitAt(/[\s,]+/)
  @Matches(/^https?:\/\/[a-z0-9.-]+(:\d{1,5})?$/, {
    each: true,
    message: '$property must be origins such as https://cdn.example.com',
  })
  COVER_ORIGINS: string[] = [];

  // The pages of download keys, which open for anyone with the link: keys of no account, all keys, or none.
  @IsIn(['unclaimed', 'all', 'off'])
  KEY_PAGES: 'unclaimed' | 'all' | 'off' = 'unclaimed';

  // Whether people can create accounts, and erase their own.
  @YesOrNo() SIGN_UP: boolean = false;

  @YesOrNo() SELF_ERASURE: boolean = true;

  // A session expires after this time without use, and after SESSION_DAYS in any case.
  @WholeNumber(1, 43_200) SESSION_IDLE_MINUTES: number = 720;

  @WholeNumber(1, 365) SESSION_DAYS: number = 14;

  // The header with the name of the signed-in user, trusted only from TRUSTED_PROXIES.
  @IsOptional()
  @Matches(/^[A-Za-z][A-Za-z0-9-]*$/, { message: '$property must be the name of a header' })
  TRUSTED_IDENTITY_HEADER?: string = undefined;

  // The OpenID Connect provider whose accounts sign in users.
  @IsOptional()
  @IsWebAddress()
  OIDC_ISSUER?: string = undefined;

  OIDC_CLIENT_ID?: string = undefined;

  OIDC_CLIENT_SECRET?: string = undefined;

  @SplitAt(/[\s,]+/)
  OIDC_SCOPES: string[] = ['openid', 'email', 'profile'];

  // The provider's name on buttons. Default: the host of OIDC_ISSUER.
  @IsOptional()
  @MaxLength(40)
  OIDC_NAME?: string = undefined;

  // Whether a person without an account gets one, by an email address that the provider verified.
  @YesOrNo() OIDC_SIGN_UP: boolean = false;

  // Whether only the provider signs in users, and not a password.
  @YesOrNo() OIDC_ONLY: boolean = false;

  @IsIn(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
  LOG_LEVEL: string = 'info';

  @IsOptional()
  @Read((text) => text.toLowerCase())
  @Matches(/^([a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*|\[[0-9a-f:.]+\])$/, {
    message: '$property must be a host name without scheme and port',
  })
  LEGACY_HOST?: string = undefined;

  // How long clients and caches may reuse the response of wharf/latest.
  @WholeNumber(0, 3600) LATEST_MAX_AGE: number = 10;

  @YesOrNo() LENIENT_CLIENTS: boolean = false;

  @Satisfies(
    'rateLimits',
    (value) => parseRateLimits(String(value)) !== undefined,
    'be off, or like credential=600/10s,user=1800/10s,address=600/10s,misses=150/10s,sign-in=10/60s',
  )
  RATE_LIMIT: string = '';

  @IsOptional()
  @Matches(/^rediss?:\/\//, { message: '$property must start with redis:// or rediss://' })
  REDIS_URL?: string = undefined;

  @Satisfies(
    'addressRanges',
    (value) => parseAddressRanges(String(value)).every(isAddressRange),
    'list IP addresses or ranges such as 10.0.0.0/8, or loopback, linklocal, uniquelocal',
  )
  TRUSTED_PROXIES: string = '';

  // Running and waiting requests; more are rejected. One IP address runs 16 of them, or 64 while it is the only one.
  @WholeNumber(1, 100_000) MAX_IN_FLIGHT: number = 500;

  // Open connections; more are closed. One IP address can have three quarters of them. At most 70% of the files that the
  // process may have open.
  @WholeNumber(1, 1_000_000) MAX_CONNECTIONS: number = 10_000;

  // A bucket of any S3-compatible storage, for the files that players download.
  @IsOptional()
  @Read(withoutSlash)
  @IsWebAddress()
  FILES_S3_ENDPOINT?: string = undefined;

  @IsOptional()
  @Matches(/^[\w.-]{3,255}$/, { message: '$property must be the name of a bucket' })
  FILES_S3_BUCKET?: string = undefined;

  @Matches(/^[\w-]+$/, { message: '$property must be the name of a region' })
  FILES_S3_REGION: string = 'us-east-1';

  FILES_S3_ACCESS_KEY_ID?: string = undefined;

  FILES_S3_SECRET_ACCESS_KEY?: string = undefined;

  // A local folder instead of a bucket. Default: files in DATA_DIR, with the embedded database.
  FILES_DIR?: string = undefined;

  // Limit of a file that an upload tool or a seller uploads, and of all files of a pushed build.
  @WholeNumber(1, 2 ** 49) FILES_MAX_BYTES: number = 5 * 2 ** 30;

  // Limit of all stored files of the games of one owner; 0: no limit.
  @WholeNumber(0, 2 ** 53 - 1) FILES_QUOTA_BYTES: number = 0;

  // Pushed builds that this process processes at the same time; 0: only other processes do.
  @WholeNumber(0, 64) BUILD_WORKERS: number = 1;

  // A folder for the temporary files of pushed builds and of signatures. Default: gamewharf-builds in the system's folder for them.
  BUILD_DIR?: string = undefined;

  // How long the URL of a file is valid.
  @WholeNumber(1, 604_800) FILES_URL_SECONDS: number = 300;

  // The port for Prometheus. Default: 9464 in production, otherwise off.
  @IsOptional()
  @Read(wholeNumber)
  @Satisfies(
    'portOrOff',
    (value) => value === 'off' || isWithin(value, 0, MAX_PORT),
    `be off or a whole number from 0 to ${MAX_PORT}`,
  )
  METRICS_PORT?: number | 'off' = undefined;

  // Default: the same as HOST.
  METRICS_HOST?: string = undefined;

  // OpenTelemetry's own names; its library reads its other variables.
  @IsOptional()
  @IsWebAddress()
  OTEL_EXPORTER_OTLP_ENDPOINT?: string = undefined;

  @IsOptional()
  @IsWebAddress()
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string = undefined;

  @YesOrNo() OTEL_SDK_DISABLED: boolean = false;

  // Seconds between SIGTERM and the first rejected connection, for the load balancer to notice. Default: 5 in
  // production, otherwise 0.
  @IsOptional()
  @WholeNumber(0, 600)
  DRAIN_SECONDS?: number = undefined;

  // Refunds on the seller's pages, for purchases of which the seller can edit every game.
  @YesOrNo() SELLERS_MAY_REFUND: boolean = false;

  // Webhooks to IP addresses of the operator's own networks.
  @YesOrNo() WEBHOOKS_ALLOW_PRIVATE: boolean = false;

  @IsOptional()
  @MinLength(16)
  @Matches(/^(?!gwo_)/, {
    message:
      '$property must not begin with gwo_: use the tokens of `operator-tokens create` directly in your programs',
  })
  OPERATOR_TOKEN?: string = undefined;

  // API keys are hashed with the pepper, and signing keys encrypted with it.
  @IsOptional()
  @MinLength(32)
  API_KEY_PEPPER?: string = undefined;

  // Previous peppers, one per line: their keys stay valid and move to the current pepper when used.
  @SplitAt(/\r?\n/)
  @MinLength(32, { each: true, message: 'each pepper in $property must have at least 32 characters' })
  API_KEY_PEPPER_PREVIOUS: string[] = [];

  // Private Ed25519 keys in PEM format, instead of keys in the database; the first one signs.
  @IsOptional()
  @Satisfies(
    'privateKeys',
    (value) => parsePrivateKeys(String(value)) !== undefined,
    'contain Ed25519 private keys in PEM format, from `openssl genpkey -algorithm ed25519`',
  )
  SIGNING_KEYS?: string = undefined;

  // The claims of JWTs. Default: PUBLIC_URL, otherwise http://HOST:PORT; the audience is the issuer.
  JWT_ISSUER?: string = undefined;

  JWT_AUDIENCE?: string = undefined;

  // Seconds for which a JWT is valid.
  @WholeNumber(60, 86_400) JWT_LIFETIME: number = 3600;

  // How long a proof of ownership is valid: it outlives a refund by as much.
  @WholeNumber(60, 86_400) PROOF_SECONDS: number = 86_400;

  // The scopes that a game's manifest can request.
  @SplitAt(/[\s,]+/)
  MANIFEST_SCOPES: string[] = ['profile:me', 'game:view:ownership'];
}

export const SETTING_NAMES = Object.keys(new Settings());
export const SECRET_NAMES = [
  'DATABASE_URL',
  'REDIS_URL',
  'OPERATOR_TOKEN',
  'OIDC_CLIENT_SECRET',
  'API_KEY_PEPPER',
  'API_KEY_PEPPER_PREVIOUS',
  'FILES_S3_ACCESS_KEY_ID',
  'FILES_S3_SECRET_ACCESS_KEY',
  'SIGNING_KEYS',
];

/** `moreProblems`: of values that this folder knows nothing about. */
export function loadSettings(
  env: NodeJS.ProcessEnv,
  moreProblems: (settings: Settings) => string[] = () => [],
): Settings {
  const problems: string[] = [];
  const given: Record<string, string> = {};
  for (const name of SETTING_NAMES) if (env[name]) given[name] = env[name];
  for (const name of SECRET_NAMES) {
    const file = env[`${name}_FILE`];
    if (!file) continue;
    if (given[name]) problems.push(`${name} and ${name}_FILE are both set: keep one`);
    try {
      given[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      problems.push(
        `${name}_FILE points to a file that can't be read (${(error as NodeJS.ErrnoException).code})`,
      );
    }
  }
  const settings = plainToInstance(Settings, given, { exposeDefaultValues: true });
  for (const { constraints } of validateSync(settings)) problems.push(...Object.values(constraints ?? {}));
  problems.push(...problemsOfStorage(settings), ...problemsOfProvider(settings), ...moreProblems(settings));
  if (settings.TRUSTED_IDENTITY_HEADER !== undefined && settings.TRUSTED_PROXIES === '')
    problems.push('TRUSTED_IDENTITY_HEADER requires TRUSTED_PROXIES, the proxies that send it');
  if (settings.TRUSTED_IDENTITY_HEADER !== undefined && settings.SIGN_UP)
    problems.push('SIGN_UP and TRUSTED_IDENTITY_HEADER are both set: people sign up at the store');
  const production = settings.NODE_ENV === 'production';
  if (production) {
    if (!settings.DATABASE_URL) problems.push('DATABASE_URL is required in production');
    if (!settings.API_KEY_PEPPER)
      problems.push('API_KEY_PEPPER is required in production: at least 32 random characters');
    if (isWebAddress(settings.JWT_ISSUER)) settings.PUBLIC_URL ??= withoutSlash(settings.JWT_ISSUER);
    else if (!settings.PUBLIC_URL)
      problems.push('PUBLIC_URL is required in production, or an http or https URL as JWT_ISSUER');
  }
  if (problems.length > 0)
    throw new OperatorError(['Invalid settings:', ...problems.map((line) => `  ${line}`)].join('\n'));
  settings.METRICS_PORT ??= production ? 9464 : 'off';
  settings.DRAIN_SECONDS ??= production ? 5 : 0;
  settings.DEMO_DATA ??= !production;
  return settings;
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
  // Two sources that say who a browser is would need a rule for when they differ.
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
