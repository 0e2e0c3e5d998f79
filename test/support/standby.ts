import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { clusterAccount } from '../../src/dev/embedded/account';
import { packagedBinaries, usableBinaries } from '../../src/dev/embedded/binaries';
import { openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { freePort, readPostmasterPid, ServerProcess, stopServer } from '../../src/dev/embedded/server';
import { shelter } from '../../src/dev/embedded/shelter';
import type { TestDatabase } from './database';
import { migrateTemplate } from './template';
import { temporaryFolder } from './temporary';
import { until } from './time';

const ACCOUNTS = ['postgres', 'nobody'];
const SHELTERS = ['/var/lib/gamewharf', '/var/tmp/gamewharf'];
const fast = {
  fsync: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB',
  dynamic_shared_memory_type: 'mmap',
};

export interface DatabaseWithStandby extends TestDatabase {
  standby_url: string;
  /** The first process of each server. */
  pids: { primary: number; standby: number };
  /** On the standby, as its superuser. */
  atStandby<Row extends object>(text: string): Promise<Row[]>;
}

const pidOf = async (cluster: string) => (await readPostmasterPid(cluster))!.pid;

/** A migrated database and its streaming standby, both real: the standby is a copy of the stopped primary that follows it. */
export async function databaseWithStandby(): Promise<DatabaseWithStandby> {
  const folder = await temporaryFolder('gamewharf-standby-');
  const open = () =>
    openEmbeddedPostgres({
      dataDir: folder,
      mode: 'serve',
      log: () => undefined,
      settings: { ...fast, wal_level: 'replica', max_wal_senders: '4' },
    });
  const before = await open();
  await migrateTemplate(before.url);
  await before.stop();

  const cluster = join(folder, 'standby');
  await cp(before.dataDir, cluster, { recursive: true });
  await writeFile(join(cluster, 'standby.signal'), '');
  const primary = await open();
  const account = await clusterAccount(cluster, ACCOUNTS);
  const native = await usableBinaries(
    packagedBinaries(),
    account,
    async () => (account ? shelter(account, SHELTERS) : folder),
    () => undefined,
  );
  const password = (await readFile(join(folder, 'postgres-password'), 'utf8')).trim();
  const port = await freePort();
  const standby = await ServerProcess.start({
    native,
    cluster,
    account,
    port,
    log: join(folder, 'standby.log'),
    settings: {
      ...fast,
      wal_receiver_status_interval: '1',
      primary_conninfo: `host=127.0.0.1 port=${new URL(primary.url).port} user=postgres password=${password}`,
    },
  });
  const at = (user: string, secret: string) => {
    const url = new URL(primary.url);
    Object.assign(url, { port: String(port), username: user, password: secret });
    return url.href;
  };
  const atStandby = async <Row extends object>(text: string): Promise<Row[]> => {
    const client = new Client({ connectionString: at('postgres', password) });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query(text)).rows as Row[];
    } finally {
      await client.end();
    }
  };
  await until(async () => {
    const failure = await standby.failure();
    if (failure) throw new Error(`The standby did not start: ${failure}`);
    return atStandby('SELECT 1').then(
      () => true,
      () => false,
    );
  }, 15_000);
  return {
    url: primary.url,
    pids: { primary: await pidOf(primary.dataDir), standby: await pidOf(cluster) },
    standby_url: at(new URL(primary.url).username, new URL(primary.url).password),
    atStandby,
    drop: async () => {
      await stopServer(native, cluster, await pidOf(cluster));
      await primary.stop();
      await rm(primary.dataDir, { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    },
  };
}
