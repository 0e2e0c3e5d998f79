import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { attach, type Attached, type EmbeddedPostgresOptions } from './attach';
import { OperatorError } from '../../platform/errors/operator-error';
import { DataFolder } from './data-folder';
import { isServerOf, readPostmasterPid, stopServer } from './server';
import { ServerSession } from './server-session';
import { withStartMutex } from './start-mutex';

/** The running PostgreSQL server of a data folder. */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const stopping = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stopping.signal]) : stopping.signal;
  const connect = async (port?: number) => {
    try {
      const folder = await DataFolder.open(options.dataDir);
      return await withStartMutex(folder.path, () => attach({ ...options, folder, port, signal }));
    } catch (error) {
      throw explained(error, options.dataDir);
    }
  };
  const attached = await connect();
  const joined = (await attached.session.others()).length > 0;
  return new EmbeddedPostgres(options, attached, joined, stopping, connect);
}

/** Adds a remedy to an error of the file system. */
function explained(error: unknown, dataDir: string): unknown {
  const { syscall, message } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  return new OperatorError(
    `The data folder ${resolve(dataDir)} cannot be used (${message}): fix the cause, set DATA_DIR to another folder, ` +
      'or set DATABASE_URL to a PostgreSQL server.',
  );
}

export class EmbeddedPostgres {
  /** The database of the app. */
  readonly url: string;
  /** The path of the data: in the data folder, or in a folder that the server's account can access. */
  readonly dataDir: string;
  private session: ServerSession | undefined;
  private recovery = Promise.resolve();
  private stopped?: Promise<void>;

  constructor(
    private readonly options: EmbeddedPostgresOptions,
    { session, cluster, url }: Attached,
    /** Whether another Gamewharf process was already using the server. */
    readonly joined: boolean,
    private readonly stopping: AbortController,
    private readonly connect: (port: number) => Promise<Attached>,
  ) {
    this.url = url;
    this.dataDir = cluster;
    this.watch(session);
  }

  /** Stops the server within 5 s, unless another Gamewharf process still uses it, which stops it later. */
  stop(): Promise<void> {
    this.stopped ??= this.disconnect();
    return this.stopped;
  }

  private async disconnect(): Promise<void> {
    this.stopping.abort();
    await this.recovery;
    const running = await readPostmasterPid(this.dataDir);
    const last = await Promise.race([this.isLast(), sleep(1_000, undefined, { ref: false })]);
    await this.session?.close();
    if (!running?.pid) return;
    // A server that doesn't respond can't list its users: the process that started it stops it.
    const ours = last ?? (!this.joined && (await isServerOf(this.dataDir, running.pid)));
    if (ours) await stopServer(this.dataDir, running.pid);
  }

  private async isLast(): Promise<boolean | undefined> {
    try {
      const last = await this.session?.unregister();
      if (last === false && !this.joined)
        this.options.log(`PostgreSQL keeps running for ${(await this.session?.others())?.join(', ')}`);
      return last;
    } catch {
      return undefined;
    }
  }

  private watch(session: ServerSession): void {
    this.session = session;
    session.onLost = () => {
      this.session = undefined;
      if (this.options.mode === 'serve' && !this.stopping.signal.aborted) this.recovery = this.recover();
    };
    // The connection may have been lost before this listener was added.
    if (session.lost) session.onLost();
  }

  private async recover(): Promise<void> {
    const { log } = this.options;
    log('lost the connection to PostgreSQL');
    for (let pause = 50; !this.stopping.signal.aborted; pause = Math.min(pause * 2, 5_000)) {
      try {
        this.watch((await this.connect(Number(new URL(this.url).port))).session);
        return log('PostgreSQL responds again');
      } catch (error) {
        log((error as Error).message);
        await sleep(pause, undefined, { signal: this.stopping.signal }).catch(() => undefined);
      }
    }
  }
}
