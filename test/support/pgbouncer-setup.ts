import { spawnSync } from 'node:child_process';
import globalSetup from './global-setup';
import { startPooler } from './pgbouncer';

/** The usual database server, with a real PgBouncer in front of it. */
export default async function pgbouncerSetup(): Promise<void> {
  const { error } = spawnSync('pgbouncer', ['--version']);
  if (error) throw new Error('This machine has no pgbouncer: on Debian, apt-get install pgbouncer');
  await globalSetup();
  const server = process.env.TEST_SERVER_URL!;
  const pooler = await startPooler(server);
  const { stop } = globalThis.testServer!;
  globalThis.testServer = {
    stop: async () => {
      await pooler.stop();
      await stop();
    },
  };
  process.env.TEST_POOLER_URL = pooler.through(server);
}
