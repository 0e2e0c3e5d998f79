import type { Server } from 'node:http';
import { Writable } from 'node:stream';
import type { ModuleMetadata } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { PasswordCost } from '../../src/auth/sign-in/password-hash';
import { problemsOfManifestScopes } from '../../src/auth/access/scopes';
import { loadSettings } from '../../src/platform/config/load-settings';
import type { Settings } from '../../src/platform/config/settings';
import { AppModule } from '../../src/app.module';
import { htmlThread } from '../../src/collections/html-thread';
import { connectionOptions } from '../../src/platform/database/data-source';
import { Database } from '../../src/platform/database/database';
import { createLogger, NestLogger } from '../../src/platform/observability/logger';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { Clock } from '../../src/platform/config/clock';
import { adapterFor, configured, optionsWith } from '../../src/app';
import { TestClock } from './clock';
import { cloneDatabase } from './database';
import { closePool, openPool } from './sql';

/**
 * The lowest cost of argon2. Hashing at the service's own cost would take a second of CPU time for every 25 sign-ins.
 */
export const LOW_COST: PasswordCost = { memoryCost: 8, timeCost: 1, parallelism: 1 };

export const PEPPER = 'a pepper for tests, long enough to pass';

if (globalThis.isPatient) {
  Object.assign(connectionOptions, { connectionTimeoutMillis: 7_000, query_timeout: 15_000 });
  Object.assign(htmlThread, { timeout: 10_000 });
}

let app: NestExpressApplication;
/** Shared by all replicas of this file. */
const clock = new TestClock();
const opened: NestExpressApplication[] = [];
let url = '';
let database_url = '';
declare global {
  var serviceLog: string[] | undefined;
}
/** What the service has logged in this file so far. `environment.mjs` shows its errors if a test fails. */
export const logged: string[] = (globalThis.serviceLog ??= []);

export type Environment = Partial<Record<keyof Settings, string>>;

/** A running service with its own database for this file. */
export function useStore(environment: Environment = {}, openDatabase = cloneDatabase): void {
  let drop: () => Promise<void>;
  afterEach(() => clock.reset());
  beforeAll(async () => {
    const database = await openDatabase();
    drop = database.drop;
    database_url = database.url;
    openPool(database.direct_url ?? database.url);
    app = await openApp({ DATABASE_URL: database.url, ...environment });
    url = await app.getUrl();
    // The timeout is long because the first file of a run compiles the service.
  }, 300_000);
  afterAll(async () => {
    // A replica left running would fail the next file with an error that names that file.
    for (const one of opened) if ((one.getHttpServer() as Server).listening) await gracefulStop(one);
    await closePool();
    await drop?.();
  });
}

interface Extension {
  /** Modules in addition to those of the service. */
  imports?: ModuleMetadata['imports'];
  /** Replaces providers, like `Test.createTestingModule`. */
  override?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
  /** Adds middleware that runs before that of the service. */
  before?: (app: NestExpressApplication) => void;
  /** Called before the app is initialized. */
  configure?: (app: NestExpressApplication) => void;
}

/** Another replica, on this file's database or another one; it stops with the file, or before. */
export async function openApp(
  environment: Environment = {},
  { imports = [], override = (builder) => builder, before, configure }: Extension = {},
): Promise<NestExpressApplication> {
  const settings = loadSettings(
    {
      NODE_ENV: 'test',
      PORT: '0',
      API_KEY_PEPPER: PEPPER,
      // Tests send more requests than any client; those of the limits set their own.
      RATE_LIMIT: 'off',
      ...(process.env.TEST_POOLER_URL ? { DATABASE_PREPARED_STATEMENTS: 'false' } : {}),
      DATABASE_URL: database_url,
      ...environment,
    } as NodeJS.ProcessEnv,
    problemsOfManifestScopes,
  );
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logged.push(chunk.toString());
      done();
    },
  });
  const logger = createLogger(settings.LOG_LEVEL, log);
  const builder = Test.createTestingModule({ imports: [AppModule.with(settings, logger), ...imports] });
  builder.setLogger(new NestLogger(logger));
  builder.overrideProvider(Clock).useValue(clock).overrideProvider(PasswordCost).useValue(LOW_COST);
  const module = await override(builder).compile();
  const replica = configured(
    module.createNestApplication<NestExpressApplication>(adapterFor(settings), optionsWith(logger)),
    before,
  );
  configure?.(replica);
  opened.push(replica);
  await replica.listen(settings.PORT, settings.HOST);
  await replica.get(Database).connect();
  return replica;
}

export const baseUrl = () => url;
export const databaseUrl = () => database_url;
export const theApp = () => app;
export const theClock = () => clock;
