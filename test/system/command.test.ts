import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Client } from 'pg';
import { cloneDatabase, withDatabase } from '../support/database';
import { isInstalled } from '../support/page-examples';
import { runIf, withoutPooler } from '../support/run-if';
import { temporaryFolder } from '../support/temporary';
import { HANGING, until } from '../support/time';

// `script` of util-linux provides a terminal; other versions take other options.
const atTerminal = runIf(isInstalled(['script', '--version']), 'script (util-linux) is not installed');

// A separate clone, because this compiles into dist.
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-command-'));
const at = (...path: string[]) => join(folder, ...path);

beforeAll(() => {
  for (const name of ['src', 'migrations', 'tools/scripts/compile.mjs', 'test/support/swc.json'])
    cpSync(name, at(name), { recursive: true });
  for (const name of ['nest-cli.json', 'package.json', 'package-lock.json']) cpSync(name, at(name));
  symlinkSync(join(process.cwd(), 'node_modules'), at('node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function node(...words: string[]) {
  const env = { ...process.env, DATABASE_URL: undefined, DATA_DIR: undefined };
  const { status, stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

const compile = () => node('tools/scripts/compile.mjs');
const nothing = { status: 0, stdout: '', stderr: '' };
const compiled = { status: 0, stdout: '', stderr: expect.stringMatching(/^Compiling.*: \d+\.\d s\.\n$/) };

describe('compilation by npm start and npm run gamewharf', () => {
  test('compiles the first time and says so, and does nothing the next time', () => {
    expect(compile()).toEqual(compiled);
    expect(existsSync(at('dist/src/dashboard/layout/assets/pages.css'))).toBe(true);
    expect(compile()).toEqual(nothing);
  });

  test('writes source maps whose sources exist, for stack traces and breakpoints', () => {
    compile();
    const maps = readdirSync(at('dist'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.map'))
      .map((name) => at('dist', name));
    const missing = maps.flatMap((map) => {
      const { sources } = JSON.parse(readFileSync(map, 'utf8')) as { sources: string[] };
      return sources.map((source) => resolve(dirname(map), source)).filter((source) => !existsSync(source));
    });
    expect(maps.length).toBeGreaterThan(300);
    expect(missing).toEqual([]);
  });

  test('compiles a changed file and removes the output of a deleted one', () => {
    writeFileSync(at('migrations/20990101000100-later.ts'), 'export const later = 1;\n');
    expect(compile()).toEqual(compiled);
    appendFileSync(at('migrations/20990101000100-later.ts'), 'export const more = 2;\n');
    expect(compile()).toEqual(compiled);
    expect(readFileSync(at('dist/migrations/20990101000100-later.js'), 'utf8')).toContain('more');
    rmSync(at('migrations/20990101000100-later.ts'));
    expect(compile()).toEqual(compiled);
    expect(readdirSync(at('dist/migrations')).filter((name) => name.includes('later'))).toEqual([]);
  });

  test('removes a stale migration, even if no source changed', () => {
    writeFileSync(at('dist/migrations/20990101000200-stale.js'), '');
    expect(compile()).toEqual(compiled);
    expect(existsSync(at('dist/migrations/20990101000200-stale.js'))).toBe(false);
  });

  test('names a file that cannot be compiled, and tries again', () => {
    const before = readFileSync(at('src/main.ts'), 'utf8');
    appendFileSync(at('src/main.ts'), 'const = 1;\n');
    for (let i = 0; i < 2; i++)
      expect(compile()).toMatchObject({ status: 1, stderr: expect.stringContaining('src/main.ts') });
    writeFileSync(at('src/main.ts'), before);
    expect(compile()).toEqual(compiled);
  });

  test('restores dist or a part of it after it was deleted', () => {
    for (const path of ['dist', 'dist/src/cli.js']) {
      rmSync(at(path), { recursive: true });
      expect(compile()).toEqual(compiled);
      expect(existsSync(at('dist/src/cli.js'))).toBe(true);
    }
  });

  test('replaces the output of `nest build`, which then does not take it for its own', () => {
    mkdirSync(at('dist'), { recursive: true });
    writeFileSync(at('dist/tsconfig.build.tsbuildinfo'), '{}');
    expect(compile()).toEqual(compiled);
    expect(existsSync(at('dist/tsconfig.build.tsbuildinfo'))).toBe(false);
    expect(compile()).toEqual(nothing);
  });
});

describe('gamewharf', () => {
  beforeAll(() => void compile());

  const gamewharf = (...words: string[]) => node('dist/src/cli.js', ...words);

  test('--version', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(gamewharf('--version')).toEqual({ ...nothing, stdout: `${version}\n` });
  });

  test.each([
    [['--version'], false],
    [['--help'], false],
    [['keys', '--help'], true],
  ])('%j loads the services only if needed: %s', (words, loads) => {
    const script = `process.on('exit', () => console.error(Object.keys(require.cache).some((file) => file.includes('typeorm'))));
      process.argv.splice(1, Infinity, 'gamewharf', ...${JSON.stringify(words)}); require('./dist/src/cli.js')`;
    expect(node('-e', script)).toMatchObject({ status: 0, stderr: `${loads}\n` });
  });

  test('help and suggestions include all commands', () => {
    expect(gamewharf('help', 'keys').stdout).toContain('create [options]');
    expect(gamewharf('--help').stdout).toMatch(/^ +games +Create, price and list games\.$/m);
    expect(gamewharf('kyes')).toMatchObject({
      status: 2,
      stderr: "Unknown command 'kyes'. Did you mean keys?\n",
    });
  });

  test.each([
    [['keys', 'list'], 'The user is missing. Use --user ash-beetle.\n'],
    [['keys', 'list', '--nothing'], "Unknown option '--nothing'.\n"],
    [['backup'], 'The argument FILE is missing.\n'],
    [['purchases', 'list', '--count', 'x'], /Use a number from 1 to 1000\.\n$/],
    [['keys'], /^Usage: gamewharf keys/],
  ])('%j ends with 2', (words, error) => {
    expect(gamewharf(...words)).toMatchObject({
      status: 2,
      stdout: '',
      stderr: typeof error === 'string' ? error : expect.stringMatching(error),
    });
  });

  describe.each(['ECONNREFUSED', 'no response'])('with an unreachable database (%s)', (reason) => {
    const silent = createServer();
    let port = 1;
    beforeAll(async () => {
      if (reason === 'ECONNREFUSED') return;
      // The system accepts the connections, and spawnSync leaves no time to respond.
      await once(silent.listen(0, '127.0.0.1'), 'listening');
      ({ port } = silent.address() as AddressInfo);
    });
    afterAll(() => silent.close());

    test.each([['games', 'list'], ['migrate'], ['backup', 'never.gz'], ['users', 'create', 'me']])(
      '%s %s ends with one sentence',
      (...words) => {
        const { status, stdout, stderr } = spawnSync(
          process.execPath,
          ['dist/src/cli.js', ...words.filter(Boolean)],
          {
            cwd: folder,
            env: {
              ...process.env,
              DATABASE_URL: `postgres://somebody@127.0.0.1:${port}/store`,
              DATA_DIR: at('unused'),
            },
            encoding: 'utf8',
            timeout: HANGING,
          },
        );
        expect({ status, stdout, stderr }).toEqual({
          status: 1,
          stdout: '',
          stderr: `The database at 127.0.0.1:${port} can't be reached (${reason}): start it, or change DATABASE_URL.\n`,
        });
      },
    );
  });

  test('backup does not overwrite a file', () => {
    writeFileSync(at('precious.gz'), 'mine');
    expect(gamewharf('backup', at('precious.gz'))).toEqual({
      status: 1,
      stdout: '',
      stderr: `${at('precious.gz')} already exists. Use --overwrite to replace it.\n`,
    });
    expect(readFileSync(at('precious.gz'), 'utf8')).toBe('mine');
  });

  test.each([
    ['keys', 'list', '--user', 'leaf'],
    ['backup', 'store.gz'],
    ['users', 'list'],
  ])('%s %s does not create a missing store', (...words) => {
    expect(gamewharf(...words)).toEqual({
      status: 1,
      stdout: '',
      stderr: `There is no store in ${at('.data')}: set DATA_DIR to the folder of the store, or start Gamewharf once to create one.\n`,
    });
    expect(existsSync(at('.data'))).toBe(false);
  });

  test.each([
    ['help', 'nope'],
    ['nope'],
    ['help', 'key'],
    ['keys', 'help', 'creat'],
    ['nope', '--help'],
    ['keys', 'creat', '-h'],
  ])('an unknown topic of help is a usage error: %s %s %s', (...words) => {
    const { status, stdout, stderr } = gamewharf(...words);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/^Unknown command '\w+'\.( Did you mean .*\?)?\n$/);
  });

  test('completion rejects an unknown shell', () => {
    expect(gamewharf('completion', 'csh')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Allowed choices are bash, zsh, fish.'),
    });
  });

  test('completion bash', () => {
    writeFileSync(at('completion'), gamewharf('completion', 'bash').stdout);
    const tried = [
      ['op', 'operator-tokens'],
      ['keys ', 'create list revoke help --help'],
      ['keys create --us', '--user'],
      ['keys create --user ', ''],
      ['keys create --user leaf --la', '--label'],
      ['keys create --scope profile:o', 'profile:owned profile:owned:claim'],
      ['files put game.zip --platform ', 'windows linux osx android'],
      ['completion ', 'bash zsh fish --help'],
      ['nothing ', ''],
    ] as const;
    const script = tried.map(
      ([line]) => `COMP_WORDS=(gamewharf ${line.replace(/ $/, " ''")}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
        _gamewharf; echo "\${COMPREPLY[*]}"`,
    );
    const { stdout, stderr } = spawnSync('bash', ['-c', `. ./completion\n${script.join('\n')}`], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout.trimEnd().split('\n')).toEqual(tried.map(([, response]) => response).slice(0, -1));
  });

  test.each([
    ['zsh', "'keys create '*)", "'--user:username of the key owner (required)'"],
    ['fish', "__gamewharf_at 'keys create'", "-l user -r -d 'username of the key owner (required)'"],
  ])('completion %s has every command and option', (shell, place, option) => {
    const { stdout } = gamewharf('completion', shell);
    expect(stdout.replaceAll("\\'", "'")).toContain(place);
    expect(stdout).toContain(option);
    const bash = readFileSync(at('completion'), 'utf8');
    const words = [...bash.matchAll(/ all='([^']*)'/g)].flatMap(([, all]) => all!.split(' '));
    expect(words.length).toBeGreaterThan(50);
    const plain = shell === 'fish' ? stdout.replaceAll('-l ', '--') : stdout;
    expect(words.filter((word) => !plain.includes(word))).toEqual([]);
  });
});

describe('the service that npm starts', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  beforeAll(async () => {
    compile();
    database = await cloneDatabase();
  });
  afterAll(() => database.drop());

  /**
   * Runs a line as npm does; returns the output once no process can write any longer. `onReady`: called when the
   * service responds.
   */
  const underShell = (line: string, onReady: (shell: ChildProcess) => void) =>
    new Promise<string>((resolve) => {
      const shell = spawn('sh', ['-c', line], {
        cwd: folder,
        env: {
          ...process.env,
          npm_lifecycle_event: 'start',
          DATABASE_URL: database.url,
          PORT: '0',
          DRAIN_SECONDS: '0',
        },
      });
      let printed = '';
      const read = (text: Buffer) => {
        const before = printed.includes('"ready"');
        printed += text.toString();
        if (!before && printed.includes('"ready"')) onReady(shell);
      };
      shell.stdout.on('data', read);
      shell.stderr.on('data', read);
      shell.once('close', () => resolve(printed));
    });

  test("ends with npm's shell", async () => {
    const printed = await underShell(`${process.execPath} dist/src/main.js; true`, (shell) => shell.kill());
    expect(printed).toContain('Gamewharf listens');
  });
});

describe('output that is not read to its end', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  let client: Client;
  beforeAll(async () => {
    compile();
    // `sell` looks up the owner of the key and prints more after it.
    mkdirSync(at('data'));
    writeFileSync(at('data/demo-api-key'), 'a key of the demo store');
    database = await cloneDatabase();
    client = new Client({ connectionString: database.direct_url ?? database.url });
    await client.connect();
    await client.query(`
      INSERT INTO users (username) SELECT 'user' || i FROM generate_series(1, 9) i;
      INSERT INTO games (user_id, slug, title) VALUES (1, 'x-moon', 'X-Moon')`);
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  test.each([
    ['sell --game 1 --to me@example.com | true', 0],
    ['users list | true', 0],
    ['users list 2>&1 | true', 0],
    ['refund 99 2>&1 | true', 1],
    ['backup - | true', 1],
  ])('does not change the exit status of gamewharf %s', async (line, status) => {
    const { stdout, stderr } = spawnSync(
      'bash',
      ['-c', `"${process.execPath}" dist/src/cli.js ${line}; echo "\${PIPESTATUS[0]}"`],
      {
        cwd: folder,
        env: { ...process.env, DATABASE_URL: database.url, DATA_DIR: at('data') },
        encoding: 'utf8',
      },
    );
    expect([stdout, stderr]).toEqual([
      `${status}\n`,
      line.startsWith('backup') ? 'Standard output was closed before all output was written.\n' : '',
    ]);
    if (line.startsWith('sell')) expect((await client.query('SELECT FROM purchases')).rowCount).toBe(1);
  });
});

describe('gamewharf interrupted by SIGINT', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  let client: Client;
  beforeAll(async () => {
    compile();
    mkdirSync(at('backups'));
    database = await cloneDatabase();
    client = new Client({ connectionString: database.direct_url ?? database.url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const start = (...words: string[]) => {
    const child = spawn(process.execPath, ['dist/src/cli.js', ...words], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: database.url, DATA_DIR: at('data') },
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (text: Buffer) => (said += text.toString()));
    const ended = new Promise((resolve) => child.once('close', (status) => resolve({ status, said })));
    return { child, ended };
  };
  const count = async (from: string) => (await client.query(`SELECT FROM ${from}`)).rowCount;

  test('backup leaves no file', async () => {
    await client.query('BEGIN; LOCK users');
    try {
      const { child, ended } = start('backup', 'backups/store.gz');
      await until(
        async () =>
          (await count(
            'pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT granted AND datname = current_database()',
          )) === 1,
      );
      expect(readdirSync(at('backups'))).toHaveLength(1);
      child.kill('SIGINT');
      expect(await ended).toEqual({ status: 130, said: '' });
      expect(readdirSync(at('backups'))).toEqual([]);
    } finally {
      await client.query('ROLLBACK');
    }
  });

  withoutPooler.test('restore leaves no database and the store as it was', async () => {
    const backup = spawnSync(process.execPath, ['dist/src/cli.js', 'backup', '-'], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: database.url, DATA_DIR: at('data') },
    }).stdout;
    await client.query(`INSERT INTO users (username) VALUES ('later')`);
    await client.end();
    const { child, ended } = start('restore', '-', '--replace');
    child.stdin.write(backup.subarray(0, -100));
    client = new Client({ connectionString: withDatabase(database.url, 'postgres') });
    await client.connect();
    // Other files restore other databases of this server at the same time.
    const isBeside = `starts_with(datname, '${new URL(database.url).pathname.slice(1)}_restore_')`;
    await until(
      async () => (await count(`pg_stat_activity WHERE query LIKE 'COPY %' AND ${isBeside}`)) === 1,
    );
    child.kill('SIGINT');
    expect(await ended).toEqual({ status: 130, said: '' });
    expect(await count(`pg_database WHERE ${isBeside}`)).toBe(0);
    await client.end();
    client = new Client({ connectionString: database.url });
    await client.connect();
    expect(await count(`users WHERE username = 'later'`)).toBe(1);
  });
});

describe('the service with its own database', () => {
  let data: string;
  let environment: NodeJS.ProcessEnv;
  const pidFile = () => join(data, 'postgres', 'postmaster.pid');
  beforeAll(async () => {
    compile();
    data = await temporaryFolder('gamewharf-command-data-');
    environment = {
      ...process.env,
      DATABASE_URL: undefined,
      DATA_DIR: data,
      DEMO_DATA: 'false',
      PORT: '0',
      DRAIN_SECONDS: '0',
    };
  });
  afterAll(() => rmSync(data, { recursive: true }));

  async function started(program: string, ...words: string[]) {
    const service = spawn(program, words, { cwd: folder, env: environment });
    let shown = '';
    service.stdout.on('data', (text: Buffer) => (shown += text.toString()));
    await until(() => Promise.resolve(shown.includes('Press Ctrl-C')), HANGING);
    return { child: service, shown };
  }

  test('stops while a command runs, which then ends with an error', async () => {
    const { child: service, shown } = await started(process.execPath, 'dist/src/main.js');
    // Run word by word, the printed commands use this store.
    expect(shown).toContain(`  DATA_DIR=${data} gamewharf users create me --developer\n`);
    // The links that they print are those of this service.
    expect(shown).toContain(`Gamewharf listens on ${readFileSync(join(data, 'address'), 'utf8')}\n`);
    const client = new Client({ connectionString: readFileSync(join(data, 'database-url'), 'utf8') });
    client.on('error', () => undefined);
    await client.connect();
    await client.query('BEGIN; LOCK users');
    const command = spawn(process.execPath, ['dist/src/cli.js', 'backup', join(data, 'store.gz')], {
      cwd: folder,
      env: environment,
    });
    let said = '';
    command.stderr.on('data', (text: Buffer) => (said += text.toString()));
    const ended = new Promise((resolve) => command.once('close', resolve));
    await until(
      async () => (await client.query(`SELECT FROM pg_locks WHERE NOT granted`)).rowCount === 1,
      HANGING,
    );
    service.kill();
    expect(await ended).toBe(1);
    expect(said).toMatch(
      /^The connection to the database was lost \(.+\)\. Uncommitted changes were rolled back: run the command again\.\n$/,
    );
    expect(readdirSync(data).filter((name) => name.startsWith('store.gz'))).toEqual([]);
    await until(() => Promise.resolve(!existsSync(pidFile())));
    await client.end();
  });

  atTerminal.test('ends with its terminal, and its database ends with it', async () => {
    const { child: terminal } = await started(
      'script',
      '-qec',
      `${process.execPath} dist/src/main.js`,
      '/dev/null',
    );
    const [server] = readFileSync(pidFile(), 'utf8').split('\n');
    terminal.kill('SIGKILL');
    // PostgreSQL deletes its PID file shortly before it ends.
    await until(() => Promise.resolve(!existsSync(`/proc/${server}/exe`)));
    expect(existsSync(pidFile())).toBe(false);
  });
});

atTerminal.describe('gamewharf delete in a terminal', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>;
  let client: Client;
  beforeAll(async () => {
    compile();
    database = await cloneDatabase();
    client = new Client({ connectionString: database.direct_url ?? database.url });
    await client.connect();
    await client.query(`
      INSERT INTO users (username) VALUES ('leaf');
      INSERT INTO games (user_id, slug, title) VALUES (1, 'x-moon', 'X-Moon');
      INSERT INTO builds (game_id, channel_name) SELECT 1, 'linux' FROM generate_series(1, 9)`);
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const isThere = async (build: number) =>
    (await client.query('SELECT FROM builds WHERE id = $1', [build])).rowCount === 1;

  /** Types the response to the prompt key by key; returns the terminal output and the exit status. */
  const ask = (build: number, keys: string) =>
    new Promise<{ shown: string; status: number | null }>((resolve) => {
      const command = `${process.execPath} dist/src/cli.js delete build ${build}`;
      const terminal = spawn('script', ['-qec', command, '/dev/null'], {
        cwd: folder,
        env: { ...process.env, DATABASE_URL: database.url, TERM: 'dumb' },
        timeout: HANGING,
      });
      let shown = '';
      terminal.stdout.on('data', (text: Buffer) => {
        const asked = shown.includes('Type yes');
        shown += text.toString();
        if (!asked && shown.includes('Type yes')) terminal.stdin.write(keys);
      });
      terminal.once('close', (status) => resolve({ shown, status }));
    });

  const ENTER = '\r';
  const CTRL_C = '\u0003';
  const CTRL_D = '\u0004';

  test.each(
    [
      { name: 'yes', keys: `yes${ENTER}`, said: 'Deleted build 1.', status: 0, deletes: true },
      { name: 'no', keys: `no${ENTER}`, said: 'Nothing was deleted.', status: 1, deletes: false },
      { name: 'y', keys: `y${ENTER}`, said: 'Nothing was deleted.', status: 1, deletes: false },
      {
        name: 'the end of input',
        keys: CTRL_D,
        said: 'Nothing was deleted. Use --yes to delete',
        status: 1,
        deletes: false,
      },
      {
        name: 'Ctrl-C',
        keys: CTRL_C,
        said: 'Nothing was deleted. Use --yes to delete',
        status: 1,
        deletes: false,
      },
    ].map((one, i) => ({ ...one, build: i + 1 })),
  )('$name', async ({ build, keys, said, status, deletes }) => {
    expect(await isThere(build)).toBe(true);
    const response = await ask(build, keys);
    expect(response).toEqual({
      shown: expect.stringContaining(`This deletes build ${build}. Type yes to continue: `),
      status,
    });
    expect(response.shown).toContain(said);
    expect(await isThere(build)).toBe(!deletes);
  });

  test('fails without a prompt if there is no terminal', async () => {
    const { status, stderr } = spawnSync(process.execPath, ['dist/src/cli.js', 'delete', 'build', '9'], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: database.url },
      input: 'yes\n',
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: 'Nothing was deleted. Use --yes to delete without confirmation.\n',
    });
    expect(await isThere(9)).toBe(true);
  });
});
