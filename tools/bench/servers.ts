import { type ChildProcess, fork, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join, resolve } from 'node:path';
import { freePort } from '../../src/dev/embedded/server';
import type { Order, Outcome, Told } from './load';
import type { Delays, Usage } from './probe';
import type { Store } from './store';
import { BUCKET } from './uploads';

export type ServerName = 'ours' | 'floor' | 'stock' | 'before';

const compiled = resolve(__dirname, '..', '..');
const PROGRAMS: Record<ServerName, string> = {
  ours: join(compiled, 'src', 'main.js'),
  floor: join(__dirname, 'servers', 'floor.js'),
  stock: join(__dirname, 'servers', 'stock', 'main.js'),
  // Another build of this service, to measure a change.
  before: resolve(process.env.BENCH_BEFORE ?? 'dist', 'src', 'main.js'),
};

const POOL_SIZE = 10;

const { scripts } = JSON.parse(readFileSync(join(compiled, '..', 'package.json'), 'utf8')) as {
  scripts: Record<'start:prod', string>;
};
const PRODUCTION_FLAGS = scripts['start:prod'].match(/--\S+/g)!;

// Every limit is enabled and counts, with a value that isn't reached.
const NOT_REACHED = 'credential=9999999/1s,address=9999999/1s,misses=9999999/1s';

/** A measured server in its own process, with its log in a file. */
export class MeasuredServer {
  private readonly responses: ((response: never) => void)[] = [];

  private constructor(
    readonly name: ServerName,
    readonly port: number,
    private readonly child: ChildProcess,
    /** Time from the start of the process to the first response of 200. */
    public readyAfter: number,
  ) {
    child.on('message', (response) => this.responses.shift()?.(response as never));
  }

  static async start(
    name: ServerName,
    store: Pick<Store, 'folder' | 'url' | 'pepper'>,
    environment: Record<string, string> = {},
  ): Promise<MeasuredServer> {
    const port = await freePort();
    const logs = join(store.folder, 'logs');
    mkdirSync(logs, { recursive: true });
    const log = openSync(join(logs, `${name}.log`), 'w');
    const start = performance.now();
    const flags = name === 'ours' || name === 'before' ? PRODUCTION_FLAGS : [];
    const child = spawn(process.execPath, [...flags, '-r', join(__dirname, 'probe.js'), PROGRAMS[name]], {
      cwd: store.folder,
      stdio: ['ignore', log, log, 'ipc'],
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        PORT: String(port),
        PUBLIC_URL: `http://127.0.0.1:${port}`,
        DATABASE_URL: store.url,
        DATABASE_POOL_SIZE: String(POOL_SIZE),
        API_KEY_PEPPER: store.pepper,
        RATE_LIMIT: NOT_REACHED,
        METRICS_PORT: String(await freePort()),
        ...BUCKET,
        ...environment,
      },
    });
    closeSync(log);
    const server = new MeasuredServer(name, port, child, 0);
    const path =
      name === 'ours' || name === 'before' ? '/health/ready' : '/wharf/latest?game_id=1&channel_name=windows';
    while (!(await responses(port, path))) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`${name} ended: see ${join(logs, `${name}.log`)}`);
      await new Promise((wait) => setTimeout(wait, 5));
    }
    server.readyAfter = performance.now() - start;
    return server;
  }

  get pid(): number {
    return this.child.pid!;
  }

  usage(): Promise<Usage> {
    return this.ask('usage');
  }

  /** The delays since the previous call. The first call starts the measurement. */
  delays(): Promise<Delays> {
    return this.ask('delays');
  }

  stop(): Promise<void> {
    return new Promise((done) => {
      if (this.child.exitCode !== null) return done();
      this.child.once('exit', () => done());
      this.child.kill('SIGKILL');
    });
  }

  private ask<Answer>(question: 'usage' | 'delays'): Promise<Answer> {
    return new Promise((response) => {
      this.responses.push(response);
      this.child.send(question);
    });
  }
}

function responses(port: number, path: string): Promise<boolean> {
  return new Promise((done) => {
    get({ port, host: '127.0.0.1', path, agent: false }, (res) => {
      res.resume();
      done(res.statusCode === 200);
    }).on('error', () => done(false));
  });
}

/** The process that generates the load. */
export class LoadGenerator {
  private readonly child = fork(join(__dirname, 'load.js'));

  /** `begun` is called when the lead-in is over. */
  drive(order: Order, begun?: () => void): Promise<Outcome> {
    return new Promise((done) => {
      const hear = (told: Told) => {
        if (told === 'begun') return begun?.();
        this.child.off('message', hear);
        done(told);
      };
      this.child.on('message', hear);
      this.child.send(order);
    });
  }

  stop(): void {
    this.child.kill();
  }
}

/** The path of pgbench, if this machine has it. */
export function findPgbench(): string | undefined {
  const folders = (process.env.PATH ?? '').split(process.platform === 'win32' ? ';' : ':');
  for (let version = 20; version >= 13; version--) folders.push(`/usr/lib/postgresql/${version}/bin`);
  const name = process.platform === 'win32' ? 'pgbench.exe' : 'pgbench';
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}
