import { transformFile } from '@swc/core';
import { ChildProcess, execFile, fork } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { packagedBinaries } from '../../src/dev/embedded/binaries';
import type { EmbeddedPostgresOptions } from '../../src/dev/embedded/embedded-postgres';

const SRC = join(__dirname, '..', '..', 'src');
const PACKAGES = join(SRC, '..', 'node_modules');

type Options = Omit<Partial<EmbeddedPostgresOptions>, 'log' | 'signal'> & { dataDir: string };
type Message = { ready: Ready } | { failed: Failure } | { log: string } | { stopped: number };

type MessageOf<K extends string> = K extends string ? Extract<Message, Record<K, unknown>> : never;

export interface Ready {
  url: string;
  hasJoined: boolean;
  dataDir: string;
  took: number;
}

export interface Failure {
  operator: boolean;
  message: string;
}

// The program does what main.ts does with the embedded server, and nothing else.
const program = `
const { openEmbeddedPostgres } = require('./dev/embedded/embedded-postgres.js');
const { OperatorError } = require('./platform/errors/operator-error.js');
const options = JSON.parse(process.argv[2]);
const start = performance.now();
const say = (message) => process.send(message);
const giveUp = new AbortController();
let server;
process.on('message', async (order) => {
  if (order === 'abort') return giveUp.abort();
  const start = performance.now();
  await Promise.all([server.stop(), server.stop()]);
  say({ stopped: performance.now() - start });
  process.disconnect();
});
openEmbeddedPostgres({
  ...options,
  log: (message) => say({ log: message }),
  signal: giveUp.signal,
}).then(
  (opened) => {
    server = opened;
    const { url, hasJoined, dataDir } = server;
    say({ ready: { url, hasJoined, dataDir, took: performance.now() - start } });
  },
  (error) => {
    say({ failed: { operator: error instanceof OperatorError, message: error.message } });
    process.disconnect();
  },
);
`;

/** The embedded server's code as plain JavaScript, for separate processes that can be killed. */
export async function compileEmbedded(target: string): Promise<string> {
  const folder = 'dev/embedded';
  const files = [
    'platform/errors/operator-error.ts',
    'platform/config/stored-secrets.ts',
    'platform/database/client.ts',
    ...(await readdir(join(SRC, folder))).map((name) => `${folder}/${name}`),
  ];
  for (const file of files) {
    const { code } = await transformFile(join(SRC, file), {
      swcrc: false,
      module: { type: 'commonjs' },
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    });
    const output = join(target, file.replace(/\.ts$/, '.js'));
    await mkdir(dirname(output), { recursive: true });
    await writeFile(output, code);
  }
  const main = join(target, 'main.js');
  await writeFile(main, program);
  return main;
}

/** The packages that this code uses, readable for every account. Returns PostgreSQL's folder among them. */
export async function copyPackages(target: string): Promise<string> {
  const binaries = relative(PACKAGES, packagedBinaries());
  const names = new Set(['embedded-postgres', 'pg', dirname(binaries)]);
  for (const name of names) {
    await cp(join(PACKAGES, name), join(target, name), { recursive: true, verbatimSymlinks: true });
    const { dependencies = {} } = JSON.parse(
      await readFile(join(PACKAGES, name, 'package.json'), 'utf8'),
    ) as { dependencies?: Record<string, string> };
    for (const dependency of Object.keys(dependencies)) names.add(dependency);
  }
  // A clone that was made with umask 077 has packages that only its owner can read.
  await promisify(execFile)('chmod', ['-R', 'a+rX', target]);
  return join(target, binaries);
}

/** A process that uses the embedded server like the service or a command. */
export class EmbeddedProcess {
  readonly logs: string[] = [];
  private readonly messages: Message[] = [];
  private wake: () => void = () => undefined;
  private exited = false;

  private constructor(readonly child: ChildProcess) {
    child.on('message', (message: Message) => {
      if ('log' in message) this.logs.push(message.log);
      else this.messages.push(message);
      this.wake();
    });
    child.on('exit', () => {
      this.exited = true;
      this.wake();
    });
  }

  static start(
    main: string,
    options: Options,
    how: { uid?: number; gid?: number; umask?: string } = {},
  ): EmbeddedProcess {
    const settings = { fsync: 'off', ...options.settings, dynamic_shared_memory_type: 'mmap' };
    const all = { mode: 'serve', ...options, settings };
    return new EmbeddedProcess(
      fork(main, [JSON.stringify(all)], {
        uid: how.uid,
        gid: how.gid,
        cwd: dirname(main),
        execArgv: [],
        env: {
          PATH: process.env.PATH,
          PGOPTIONS: '-c nonsense=1',
        },
      }),
    );
  }

  async ready(): Promise<Ready> {
    const message = await this.next('ready');
    return message.ready;
  }

  async failure(): Promise<Failure> {
    const message = await this.next('failed');
    return message.failed;
  }

  /** Resolves with the first of the events `ready` and `failed`. */
  async outcome(): Promise<Ready | Failure> {
    const message = await this.next<'ready' | 'failed'>('ready', 'failed');
    return 'ready' in message ? message.ready : message.failed;
  }

  /** Returns the duration in milliseconds. */
  async stop(): Promise<number> {
    this.child.send('stop');
    const message = await this.next('stopped');
    await this.end();
    return message.stopped;
  }

  abort(): void {
    this.child.send('abort');
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.end();
  }

  private async end(): Promise<void> {
    while (!this.exited) await this.change();
  }

  private async next<K extends 'ready' | 'failed' | 'stopped'>(...kinds: K[]): Promise<MessageOf<K>> {
    for (;;) {
      const found = this.messages.findIndex((message) => kinds.some((kind) => kind in message));
      if (found >= 0) return this.messages.splice(found, 1)[0] as MessageOf<K>;
      if (this.exited || (this.messages.length && 'failed' in this.messages[0]!)) {
        throw new Error(`No ${kinds.join(' or ')}: ${JSON.stringify([...this.messages, ...this.logs])}`);
      }
      await this.change();
    }
  }

  private change(): Promise<void> {
    return new Promise((resolve) => (this.wake = resolve));
  }
}
