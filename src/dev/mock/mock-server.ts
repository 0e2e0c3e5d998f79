import { readFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { adapterFor, configured, optionsWith } from '../../app';
import { Database } from '../../platform/database/database';
import { migrate } from '../../platform/database/migrate';
import { loadSettings } from '../../platform/config/load-settings';
import { OperatorError } from '../../platform/errors/operator-error';
import { createLogger } from '../../platform/observability/logger';
import { gracefulStop } from '../../platform/operations/graceful-stop';
import { listen } from '../../platform/server/listen';
import { RequestGate } from '../../platform/server/request-gate';
import { ServiceUrl } from '../../platform/server/service-url';
import { openDatabase, type OpenDatabase } from '../open-database';
import { interceptTraffic } from './mock-app';
import { MockFolder } from './mock-folder';
import { MOCK_API_KEY } from './mock-seed';
import { MockModule } from './mock.module';
import { LIVE, LiveQuirks, NO_QUIRKS } from './quirks.service';
import { ResetService } from './reset.service';
import { createAuthority, HOSTS, TlsFront } from './tls';

export interface MockOptions {
  port: number;
  host: string;
  /** Path of a file with records. */
  seed?: string;
  tls?: boolean;
  quirks: 'live' | 'none';
}

/** The first line of output, for the program that started the mock. */
export interface Ready {
  ready: true;
  url: string;
  api_key: string;
  /** Path of the certificate authority's file; null without TLS. */
  ca: string | null;
}

/** Names of this machine in the certificate. */
const CERTIFIED = ['localhost', '127.0.0.1'];
const LISTEN_OPTIONS = { port: '--port', host: '--host' };

/** The service on an embedded database in a temporary folder, with the routes under `/mock`. */
export class MockServer {
  private folder?: MockFolder;
  private database?: OpenDatabase;
  private app?: NestExpressApplication;
  private front?: TlsFront;
  private readonly interruption = new AbortController();

  async start({ port, host, seed, tls, quirks }: MockOptions, env: NodeJS.ProcessEnv): Promise<Ready> {
    requireMockEnvironment(env);
    const records = seed === undefined ? '' : readSeed(seed);
    this.folder = await MockFolder.create(env.GAMEWHARF_MOCK_TEMPLATE);
    const authority = tls ? createAuthority(this.folder.path) : undefined;
    if (authority) this.front = await TlsFront.listen(authority, { port, host }, LISTEN_OPTIONS);
    const publicUrl =
      this.front && `https://${CERTIFIED.includes(host) ? host : CERTIFIED[0]}:${this.front.port}`;
    const log = (line: string) => console.error(line);
    const initialSettings = loadSettings({
      NODE_ENV: 'development',
      LOG_LEVEL: env.LOG_LEVEL ?? 'warn',
      HOST: tls ? '127.0.0.1' : host,
      PORT: String(tls ? 0 : port),
      DATA_DIR: join(this.folder.path, 'data'),
      DEMO_DATA: 'false',
      LENIENT_CLIENTS: 'true',
      RATE_LIMIT: 'off',
      ...(publicUrl && { PUBLIC_URL: publicUrl }),
    });
    this.database = await openDatabase(
      initialSettings,
      'serve',
      log,
      this.interruption.signal,
      WITHOUT_DURABILITY,
    );
    const { settings } = this.database;
    await migrate(settings, log);
    const logger = createLogger(settings.LOG_LEVEL, process.stderr);
    const app = (this.app = await NestFactory.create<NestExpressApplication>(
      MockModule.with(settings, logger),
      adapterFor(settings),
      optionsWith(logger),
    ));
    configured(app, interceptTraffic);
    const gate = app.get(RequestGate);
    gate.isStarting = true;
    await app.init();
    await listen(app.getHttpServer() as Server, { port: settings.PORT, host: settings.HOST }, LISTEN_OPTIONS);
    await app.get(Database).connect();
    app.get(LiveQuirks).start(quirks === 'live' ? LIVE : NO_QUIRKS);
    await app.get(ResetService).start(records);
    gate.isStarting = false;
    if (this.front) {
      this.front.forwardTo((app.getHttpServer().address() as AddressInfo).port);
      log(['Lines for a hosts file:', ...HOSTS.map((name) => `127.0.0.1 ${name}`)].join('\n'));
    }
    const url = publicUrl ?? app.get(ServiceUrl).url;
    return { ready: true, url, api_key: MOCK_API_KEY, ca: authority?.file ?? null };
  }

  async stop(): Promise<void> {
    this.interruption.abort();
    try {
      this.front?.close();
      // The longest delay of a fault is a minute.
      if (this.app) await gracefulStop(this.app, MOCK_REQUESTS_TIMEOUT_MS);
      await this.database?.stop();
    } finally {
      await this.folder?.remove();
    }
  }
}

const MOCK_REQUESTS_TIMEOUT_MS = 300;

/** Nothing in the database of a mock needs to survive. */
const WITHOUT_DURABILITY = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' };

/** Creates a data folder with a migrated database, which later mocks copy. */
export async function prepareTemplate(folder: string): Promise<void> {
  const log = (line: string) => console.error(line);
  const initialSettings = loadSettings({ NODE_ENV: 'development', DATA_DIR: folder, DEMO_DATA: 'false' });
  const { signal } = new AbortController();
  const database = await openDatabase(initialSettings, 'serve', log, signal, WITHOUT_DURABILITY);
  try {
    await migrate(database.settings, log);
  } finally {
    await database.stop();
  }
}

function requireMockEnvironment({ NODE_ENV, DATABASE_URL }: NodeJS.ProcessEnv): void {
  if (NODE_ENV === 'production')
    throw new OperatorError('`gamewharf mock` is for tests, and does not start with NODE_ENV=production.');
  if (DATABASE_URL)
    throw new OperatorError(
      '`gamewharf mock` deletes all records at each reset. It uses its own database: unset DATABASE_URL.',
    );
}

function readSeed(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new OperatorError(`${file} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}
