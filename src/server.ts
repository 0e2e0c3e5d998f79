import type { Server as HttpServer } from 'node:http';
import { EntityManager } from 'typeorm';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { explain, startedByNpm, watchParent } from './platform/config/environment';
import { settingsOfThisProcess } from './process-settings';
import type { Settings } from './platform/config/settings';
import { User } from './auth/accounts/user.entity';
import { SigningKeysService } from './auth/jwt/signing-keys.service';
import { Demo } from './dashboard/layout/demo';
import { SetupService } from './auth/sign-in/setup.service';
import { createApp } from './app';
import { Database } from './platform/database/database';
import { migrate } from './platform/database/migrate';
import { openDatabase, type OpenDatabase } from './dev/open-database';
import { greeting } from './dev/greeting';
import { terminalLog } from './dev/terminal-log';
import { createLogger } from './platform/observability/logger';
import { ServiceUrl } from './platform/server/service-url';
import { loadDemoStore } from './dev/demo/demo-store';
import { gracefulStop } from './platform/operations/graceful-stop';
import { listen } from './platform/server/listen';
import { RequestGate } from './platform/server/request-gate';

/** Runs the service in this process until a signal ends it. */
export function serve(): void {
  const server = new Server();
  // SIGHUP: the terminal was closed.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => void server.stop(0));
  if (startedByNpm()) watchParent(() => void server.stop(0));
  server.start(settingsOfThisProcess).catch((error: unknown) => {
    if (!server.isStopping) console.error(explain(error));
    void server.stop(1);
  });
}

/** Starts and stops the serving process: database, application, port. */
export class Server {
  private readonly interruption = new AbortController();
  private opening?: Promise<OpenDatabase>;
  private app?: NestExpressApplication;
  private stopping?: Promise<void>;

  async start(readSettings: () => Settings): Promise<void> {
    const say = (line: string) => console.error(line);
    const initialSettings = readSettings();
    this.opening = openDatabase(initialSettings, 'serve', say, this.interruption.signal);
    const { settings } = await this.opening;
    const production = settings.NODE_ENV === 'production';
    // The operator decides when a production schema changes.
    if (!production) await migrate(settings, say);
    const forTerminal = !production && process.stdout.isTTY;
    const logger = createLogger(settings.LOG_LEVEL, forTerminal ? terminalLog(process.stdout) : undefined);
    this.app = await createApp(settings, logger);
    const gate = this.app.get(RequestGate);
    gate.isStarting = true;
    // `app.listen` would log the error of a port that is in use.
    await this.app.init();
    // With Node's backlog of 511, one client that opens many connections at once delays the others.
    await listen(this.app.getHttpServer() as HttpServer, {
      port: settings.PORT,
      host: settings.HOST,
      backlog: settings.MAX_CONNECTIONS,
    });
    await this.app.get(Database).connect();
    await this.app.get(SigningKeysService).requirePepper();
    const service = this.app.get(ServiceUrl);
    const demo = settings.DEMO_DATA ? await loadDemoStore(settings, service.url) : undefined;
    logger.info({ address: service.listening }, 'ready');
    const setup = this.app.get(SetupService);
    const setupCode = (await setup.isOpen()) ? await setup.code() : undefined;
    if (setupCode !== undefined) logger.warn({ url: `${service.url}/setup` }, `setup code: ${setupCode}`);
    if (!production) {
      this.app.get(Demo).access = demo;
      const hasOwnDatabase = !initialSettings.DATABASE_URL;
      if (demo || hasOwnDatabase) service.announce();
      const isEmpty = !(await this.app.get(EntityManager).existsBy(User, {}));
      console.log(greeting(service.url, { demo, hasOwnDatabase, isEmpty, setupCode }));
    }
    gate.isStarting = false;
  }

  get isStopping(): boolean {
    return this.stopping !== undefined;
  }

  /** Stops and ends the process; further calls wait for the first. */
  stop(code: number): Promise<void> {
    this.stopping ??= (async () => {
      this.interruption.abort();
      try {
        if (this.app) await gracefulStop(this.app);
        // An aborted start rejects.
        const database = await this.opening?.catch(() => undefined);
        await database?.stop();
      } finally {
        process.exit(code);
      }
    })();
    return this.stopping;
  }
}
