import { NestFactory } from '@nestjs/core';
import { AppModule } from '../app.module';
import type { CommandRunner } from './operator-command';
import type { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { migrate } from '../platform/database/migrate';
import { openDatabase, requireStore } from '../dev/open-database';
import { lostConnection } from '../platform/database/reachable';
import { explain, interruptible, settingsOfThisProcess } from '../platform/config/environment';
import { RequestGate } from '../platform/http/request-gate';
import { createLogger, NestLogger } from '../platform/observability/logger';

interface Closable {
  close(): Promise<unknown>;
}

const EXIT_INTERRUPTED = 130;

export const runCommand: CommandRunner = (work, { database: needed = true, makesStore = false } = {}) =>
  interruptible(async (interrupted) => {
    const say = (line: string) => console.error(line);
    const opened: Closable[] = [];
    // A command isn't aborted if its output is not read to the end: `head` closes its input early.
    for (const output of [process.stdout, process.stderr]) output.on('error', unlessClosed);
    try {
      if (needed && !makesStore) requireStore(settingsOfThisProcess());
      const settings = needed ? await withDatabase(say, opened, interrupted) : settingsOfThisProcess();
      const logger = createLogger(
        settings.LOG_LEVEL === 'info' ? 'warn' : settings.LOG_LEVEL,
        process.stderr,
      );
      const app = await NestFactory.createApplicationContext(
        AppModule.with(settings, new RequestGate(settings, logger)),
        { logger: new NestLogger(logger), abortOnError: false },
      );
      opened.push(app);
      if (needed) await app.get(Database).connect();
      await work(app, interrupted);
    } catch (error) {
      if (!interrupted.aborted) console.error(explain(lostConnection(error) ?? error));
      process.exitCode = 1;
    }
    for (const one of opened.reverse())
      await one.close().catch((error: unknown) => console.error(explain(error)));
    if (interrupted.aborted) process.exitCode = EXIT_INTERRUPTED;
  });

function unlessClosed(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

async function withDatabase(
  say: (line: string) => void,
  opened: Closable[],
  interrupted: AbortSignal,
): Promise<Settings> {
  const database = await openDatabase(settingsOfThisProcess(), 'join-or-start', say, interrupted);
  opened.push({ close: () => database.stop() });
  if (database.embedded) await migrate(database.settings, say);
  return database.settings;
}
