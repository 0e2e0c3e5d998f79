import { type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from '../app.module';
import type { CommandRunner } from './operator-command';
import { interruptible } from '../platform/config/environment';
import { settingsOfThisProcess } from '../process-settings';
import type { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { migrate } from '../platform/database/migrate';
import { requireSupportedServer } from '../platform/database/reachable';
import { CONNECT_TIMEOUT_MS, withClient } from '../platform/database/with-client';
import { requireStore } from '../dev/open-database';
import { createLogger, NestLogger } from '../platform/observability/logger';
import { say, withDatabase } from './with-database';

export const runCommand: CommandRunner = async (work, { database = true, createsStore = false } = {}) => {
  // A command isn't aborted if its output is not read to the end: `head` closes its input early.
  for (const output of [process.stdout, process.stderr]) output.on('error', unlessClosed);
  if (!database)
    return interruptible((signal) => withApp(settingsOfThisProcess(), (app) => work(app, signal)));
  if (!createsStore) requireStore(settingsOfThisProcess());
  await withDatabase(async ({ settings, isEmbedded }, signal) => {
    if (isEmbedded) await migrate(settings, say);
    else await requireReachable(settings);
    await withApp(settings, async (app) => {
      await app.get(Database).connect(CONNECT_TIMEOUT_MS);
      await work(app, signal);
    });
  });
};

/** Checks the database before the services are loaded, because loading them takes longer. */
const requireReachable = ({ DATABASE_URL }: Settings) =>
  withClient({ connectionString: DATABASE_URL }, requireSupportedServer);

function unlessClosed(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

async function withApp(
  settings: Settings,
  work: (app: INestApplicationContext) => Promise<void>,
): Promise<void> {
  const logger = createLogger(settings.LOG_LEVEL === 'info' ? 'warn' : settings.LOG_LEVEL, process.stderr);
  const app = await NestFactory.createApplicationContext(AppModule.forCommand(settings, logger), {
    logger: new NestLogger(logger),
    abortOnError: false,
  });
  try {
    await work(app);
  } finally {
    await app.close();
  }
}
