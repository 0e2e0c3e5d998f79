import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { until } from '../support/time';

const root = resolve(__dirname, '..', '..');
const CLI = join(root, 'dist', 'src', 'cli.js');
const started: ChildProcess[] = [];
/** A separate folder, so that the folders of other tests don't count. */
let temporary: string;

beforeAll(() => {
  spawnSync(process.execPath, ['tools/scripts/compile.mjs'], { cwd: root });
});

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'mock-test-'));
  spawnSync('chmod', ['755', temporary]);
});

afterEach(async () => {
  for (const child of started.splice(0))
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  await until(() => folders().every((name) => !isServing(name)));
  rmSync(temporary, { recursive: true, force: true });
});

const folders = () => readdirSync(temporary).filter((name) => name.startsWith('gamewharf-mock-'));

/** Whether the database server of the folder runs. */
function isServing(folder: string): boolean {
  try {
    const [pid] = readFileSync(join(temporary, folder, 'data', 'postgres', 'postmaster.pid'), 'utf8').split(
      '\n',
    );
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
}

interface Ready {
  ready: true;
  url: string;
  api_key: string;
  ca: string | null;
}

const environment = (more: NodeJS.ProcessEnv = {}) => {
  const { DATABASE_URL: _, ...env } = process.env;
  return { ...env, NODE_ENV: undefined, TMPDIR: temporary, ...more };
};

async function startMock(
  ...options: string[]
): Promise<{ child: ChildProcess; ready: Ready; stderr: () => string }> {
  const child = spawn(process.execPath, [CLI, 'mock', '--port', '0', ...options], {
    env: environment(),
    cwd: temporary,
  });
  started.push(child);
  let problem = '';
  child.stderr.on('data', (chunk: Buffer) => (problem += chunk.toString()));
  const lines = createInterface(child.stdout);
  const [line] = (await Promise.race([
    once(lines, 'line'),
    // `exit` may come before the last output.
    once(child, 'close').then(() => Promise.reject(new Error(problem))),
  ])) as [string];
  lines.on('line', (more) => (problem += `unexpected line: ${more}`));
  return { child, ready: JSON.parse(line) as Ready, stderr: () => problem };
}

const profile = async (url: string) =>
  (await fetch(`${url}/profile`, { headers: { authorization: 'Bearer gw_test_key' } })).json();

test('starts empty with one developer, and leaves nothing after SIGTERM', async () => {
  const { child, ready } = await startMock();
  expect(ready).toEqual({ ready: true, url: expect.any(String) as string, api_key: 'gw_test_key', ca: null });
  expect(await profile(ready.url)).toMatchObject({ user: { id: 1, username: 'test-dev', developer: true } });
  await fetch(`${ready.url}/mock/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    // The service itself waits longer for a response.
    body: JSON.stringify({ match: { path: '/health/live' }, then: { delay_ms: 4900 } }),
  });
  const slow = fetch(`${ready.url}/health/live`);
  await until(async () => (await (await fetch(`${ready.url}/mock/faults`)).text()).includes('"used":1'));
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await expect(slow).rejects.toThrow();
  await until(() =>
    profile(ready.url).then(
      () => false,
      () => true,
    ),
  );
  // npm and impatient people send it twice.
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
  expect(folders()).toEqual([]);
});

test.each([['without options'], ['with --tls', '--tls']])(
  'says what to do if the port is in use, %s',
  async (_, ...options) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const start = startMock('--port', String(port), ...options);
    await expect(start).rejects.toThrow(
      new RegExp(
        `^Port ${port} on 127.0.0.1 is already in use\\. .* or set --port to a different port\\.$`,
        'm',
      ),
    );
    await expect(start).rejects.not.toThrow('EADDRINUSE');
    other.close();
  },
);

test('starts with a seed, and lists its mistakes', async () => {
  const seed = join(temporary, 'seed.ndjson');
  writeFileSync(seed, '{"type":"game","id":3,"user_id":1,"slug":"moon","title":"Moon"}\n');
  const { ready } = await startMock('--seed', seed);
  const games = await fetch(`${ready.url}/profile/games`, {
    headers: { authorization: 'Bearer gw_test_key' },
  });
  expect(await games.json()).toMatchObject({ games: [{ id: 3 }] });
  writeFileSync(seed, '\n{"type":"game","id":3,"user_id":7,"slug":"moon","title":"Moon"}\n');
  await expect(startMock('--seed', seed)).rejects.toThrow(/^line 2: game 3: user 7 does not exist$/m);
  expect(started.at(-1)!.exitCode).toBe(1);
});

test('rejects production and a database of the developer', async () => {
  for (const more of [{ NODE_ENV: 'production' }, { DATABASE_URL: 'postgres://localhost/store' }]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, 'mock', '--port', '0'], {
      env: environment(more),
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain(Object.keys(more)[0]);
  }
});

test('says what to do if it cannot create its folder', () => {
  const TMPDIR = join(temporary, 'missing');
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, 'mock', '--port', '0'], {
    env: environment({ TMPDIR }),
    encoding: 'utf8',
  });
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: '',
    stderr: `No folder can be created in ${TMPDIR} (ENOENT). Set TMPDIR to a folder that this user can write to.\n`,
  });
});

test.each(['npx', 'gamewharf'])(
  'ends with the shell of npm_lifecycle_event %s',
  async (npm_lifecycle_event) => {
    const shell = spawn('sh', ['-c', `"${process.execPath}" "${CLI}" mock --port 0; true`], {
      env: environment({ npm_lifecycle_event: 'npx' }),
    });
    started.push(shell);
    await once(createInterface(shell.stdout), 'line');
    const [folder] = folders();
    const pid = Number(readFileSync(join(temporary, folder!, 'mock.pid'), 'utf8'));
    shell.kill('SIGTERM');
    try {
      await until(() => folders().length === 0);
    } finally {
      if (folders().length > 0) process.kill(pid);
    }
  },
);

test('a killed mock takes its database server with it, and the next start deletes what is left', async () => {
  // As in many containers, the parent doesn't wait for the process, which stays in the list of processes.
  const parent = spawn(
    'sh',
    ['-c', '"$@" & exec sleep 600', 'sh', process.execPath, CLI, 'mock', '--port', '0'],
    {
      env: environment(),
    },
  );
  started.push(parent);
  await once(createInterface(parent.stdout), 'line');
  const [folder] = folders();
  expect(isServing(folder!)).toBe(true);
  process.kill(Number(readFileSync(join(temporary, folder!, 'mock.pid'), 'utf8')), 'SIGKILL');
  await until(() => !isServing(folder!));
  await startMock();
  expect(folders()).not.toContain(folder);
});

test('ends with the program that started it', async () => {
  const program = `
    const { startMock } = require(${JSON.stringify(join(root, 'client', 'mock.js'))});
    startMock({ seed: [{ type: 'user', id: 5, username: 'five' }] }).then((store) => {
      console.log(store.url);
      process.stdin.resume().once('data', () => process.exit());
    });`;
  const parent = spawn(process.execPath, ['-e', program], {
    env: environment(),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  started.push(parent);
  const [url] = (await once(createInterface(parent.stdout!), 'line')) as [string];
  const found = await fetch(`${url}/users/5`, { headers: { authorization: 'Bearer gw_test_key' } });
  expect(found.status).toBe(200);
  parent.stdin!.write('\n');
  await once(parent, 'exit');
  await until(() => folders().length === 0);
});

test('serves https for hosts that a program cannot change', async () => {
  const { ready, stderr } = await startMock('--tls', '--host', '0.0.0.0');
  // The certificate has no name for all addresses.
  expect(ready.url).toMatch(/^https:\/\/localhost:/);
  expect(existsSync(ready.ca!)).toBe(true);
  expect(stderr()).toContain('127.0.0.1 api.itch.io');
  const { port } = new URL(ready.url);
  const status = await new Promise((resolve, reject) => {
    get(
      'https://api.itch.io/profile',
      {
        ca: readFileSync(ready.ca!),
        port,
        lookup: (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
        headers: { authorization: 'Bearer gw_test_key' },
      },
      (response) => resolve(response.resume().statusCode),
    ).on('error', reject);
  });
  expect(status).toBe(200);
  await expect(fetch(ready.url.replace('https', 'http'))).rejects.toThrow();
});
