import { IsIn, IsOptional, Matches, MaxLength, MinLength } from 'class-validator';
import { parseAddressRanges, isAddressRange } from './address-ranges';
import { parsePrivateKeys } from './private-keys';
import { parseRateLimits } from './rate-limits';
import {
  IsBaseAddress,
  IsServerUrl,
  isWithin,
  IsWebAddress,
  LOGO_EXTENSIONS,
  MAX_PORT,
  Read,
  ReadableFile,
  Satisfies,
  SplitAt,
  WholeNumber,
  wholeNumber,
  withHost,
  withoutSlash,
  YesOrNo,
} from './setting-rules';

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
  @Read(withHost)
  @IsServerUrl('postgresql://', 'postgres://')
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
  @IsBaseAddress()
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

  // Whether users can sign in only with the provider, and not with a password.
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
  @IsServerUrl('redis://', 'rediss://')
  REDIS_URL?: string = undefined;

  @Satisfies(
    'addressRanges',
    (value) => parseAddressRanges(String(value)).every(isAddressRange),
    'list IP addresses or ranges such as 10.0.0.0/8, or loopback, linklocal, uniquelocal',
  )
  TRUSTED_PROXIES: string = '';

  // Maximum number of running and waiting requests. One IP address can have 16 running requests, or 64 while
  // no other sends any.
  @WholeNumber(1, 100_000) MAX_IN_FLIGHT: number = 500;

  // Maximum number of open connections. One IP address can have three quarters of them. The limit is at most
  // 70% of the files that the process may have open.
  @WholeNumber(1, 1_000_000) MAX_CONNECTIONS: number = 10_000;

  // A bucket of any S3-compatible storage, for the files that players download.
  @IsOptional()
  @Read(withoutSlash)
  @IsBaseAddress()
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

  // Maximum size of a file that an upload tool or a seller uploads, and of all files of a pushed build.
  @WholeNumber(1, 2 ** 49) FILES_MAX_BYTES: number = 5 * 2 ** 30;

  // Maximum size of all stored files of one owner's games; 0: no limit.
  @WholeNumber(0, 2 ** 53 - 1) FILES_QUOTA_BYTES: number = 0;

  // Number of pushed builds that this process processes at the same time; 0: only other processes do.
  @WholeNumber(0, 64) BUILD_WORKERS: number = 1;

  // A folder for the temporary files of pushed builds and of signatures. Default: the system's temporary folder.
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

  // These names are OpenTelemetry's own; its library reads its other variables.
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

  // Whether sellers can refund purchases on their pages, if they can edit every game of the purchase.
  @YesOrNo() SELLERS_MAY_REFUND: boolean = false;

  // Whether webhooks can be sent to IP addresses of the operator's own networks.
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

  // Claims of JWTs. Default: PUBLIC_URL, otherwise http://HOST:PORT; the audience is the issuer.
  JWT_ISSUER?: string = undefined;

  JWT_AUDIENCE?: string = undefined;

  // Seconds for which a JWT is valid.
  @WholeNumber(60, 86_400) JWT_LIFETIME: number = 3600;

  // How long a proof of ownership is valid, even after a refund.
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
