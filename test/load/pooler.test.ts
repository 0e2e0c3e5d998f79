import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { hasKubectl } from '../support/manifests';
import { renderEnvironment, one } from '../support/overlays';
import { hasPgBouncer, responds, startPooler } from '../support/pgbouncer';
import { runIf } from '../support/run-if';
import { sleep, until } from '../support/time';

const withPoolerAndKubectl = runIf(
  hasPgBouncer && hasKubectl,
  'pgbouncer and kubectl are not both installed',
);

/** PgBouncer's default settings wait for 15 seconds after a failed login. */
const SOON = 8000;

withPoolerAndKubectl.describe('PostgreSQL after an outage behind PgBouncer', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'gamewharf-pooler-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const start = (name: string) =>
    openEmbeddedPostgres({
      dataDir: path.join(folder, name),
      mode: 'serve',
      settings: { fsync: 'off' },
      log: () => undefined,
    });

  /** Returns the milliseconds until it responds again, at most the time limit. */
  async function recovery(name: string, parameters: Record<string, string>): Promise<number> {
    let server = await start(name);
    const pooler = await startPooler(server.url, parameters);
    const responses = () => responds(pooler.through(server.url), 1000);
    try {
      await server.stop();
      await until(async () => !(await responses()));
      // PgBouncer notices with a failed login.
      await sleep(1500);
      server = await start(name);
      const back = performance.now();
      while (!(await responses()) && performance.now() - back < SOON) await sleep(50);
      return performance.now() - back;
    } finally {
      await pooler.stop();
      await server.stop();
      rmSync(server.dataDir, { recursive: true, force: true });
    }
  }

  it('is used soon with the parameters of the manifests', async () => {
    const { max_prepared_statements, ...parameters } = one(renderEnvironment('production').database, 'Pooler')
      .spec.pgbouncer.parameters;
    expect(Number(max_prepared_statements)).toBeGreaterThan(0);
    expect(await recovery('ours', parameters)).toBeLessThan(SOON);
  });
  it("control: is not used with PgBouncer's defaults", async () => {
    expect(await recovery('default', {})).toBeGreaterThanOrEqual(SOON);
  });
});
