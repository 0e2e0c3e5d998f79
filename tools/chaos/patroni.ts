import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serverAccount, type Account } from '../../src/dev/embedded/account';
import { freePort, readPostmasterPid } from '../../src/dev/embedded/server';
import { until } from '../../test/support/time';
import { ask } from './ask';
import { FaultyProxy } from '../../test/support/proxy';
import { ACCOUNTS } from './postgres';
import { familyOf, killFamily, signal } from './processes';

const BINARIES = '/usr/lib/postgresql/15/bin';
const works = (program: string) => spawnSync(program, ['--version']).status === 0;

/** Debian's packages `patroni`, `etcd-server` and `postgresql-15`. */
export const hasPatroni = works('patroni') && works('etcd') && existsSync(BINARIES);

// The least that Patroni allows: a leader that is gone is noticed when its lock expires.
const LOCK_SECONDS = 20;

/** One PostgreSQL with its Patroni. */
export class Node {
  private process: ChildProcess | undefined;

  constructor(
    readonly name: string,
    readonly port: number,
    private readonly control: number,
    private readonly file: string,
    private readonly data: string,
    private readonly account: Account | undefined,
    private readonly log: string,
    /** By which the other node follows this one. */
    readonly line: FaultyProxy,
  ) {}

  start(): void {
    const { uid, gid } = this.account ?? {};
    const output = openSync(this.log, 'a');
    this.process = spawn('patroni', [this.file], { uid, gid, stdio: ['ignore', output, output], cwd: '/' });
  }

  /** Whether it takes writes. */
  isReady(): Promise<boolean> {
    return this.says('/primary');
  }

  /** Whether no acknowledged write is missing from it. */
  isSynchronous(): Promise<boolean> {
    return this.says('/sync');
  }

  isReplica(): Promise<boolean> {
    return this.says('/replica');
  }

  /** Both at once, as a machine that loses its power. */
  async kill(): Promise<void> {
    await this.freeze();
    for (const pid of await this.processes()) await killFamily(pid);
  }

  async freeze(): Promise<void> {
    for (const pid of await this.processes()) signal(await familyOf(pid), 'SIGSTOP');
  }

  async thaw(): Promise<void> {
    for (const pid of await this.processes()) signal((await familyOf(pid)).toReversed(), 'SIGCONT');
  }

  /** Patroni, and the PostgreSQL that it does not keep as its child. */
  private async processes(): Promise<number[]> {
    const postgres = (await readPostmasterPid(this.data))?.pid;
    return [this.process?.pid, postgres].filter((pid) => pid !== undefined);
  }

  private says(path: string): Promise<boolean> {
    return ask(`http://127.0.0.1:${this.control}${path}`, { timeout: 1000 }).then(
      ({ status }) => status === 200,
      () => false,
    );
  }
}

/** Two nodes under Patroni, which agree by an etcd of their own on who is the primary. */
export class PatroniCluster {
  private etcd: ChildProcess | undefined;

  private constructor(readonly nodes: Node[]) {}

  static async start(folder: string, { synchronous }: { synchronous: boolean }): Promise<PatroniCluster> {
    const account = await serverAccount(ACCOUNTS);
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    const own = (path: string) => account && chownSync(path, account.uid, account.gid);
    const [client, peer] = [await freePort(), await freePort()];
    const nodes: Node[] = [];
    for (const name of ['one', 'two']) {
      const [port, control] = [await freePort(), await freePort()];
      const home = join(folder, name);
      mkdirSync(home, { mode: 0o700 });
      own(home);
      const file = join(folder, `${name}.yml`);
      const line = await FaultyProxy.before(`postgresql://127.0.0.1:${port}`);
      const advertised = new URL(line.through('postgresql://127.0.0.1')).port;
      const settings = { name, port, advertised, control, client, data: join(home, 'data'), synchronous };
      writeFileSync(file, settingsOf(settings));
      nodes.push(
        new Node(name, port, control, file, settings.data, account, join(folder, `${name}.log`), line),
      );
    }
    const cluster = new PatroniCluster(nodes);
    const output = openSync(join(folder, 'etcd.log'), 'a');
    const at = (port: number) => `http://127.0.0.1:${port}`;
    cluster.etcd = spawn(
      'etcd',
      [
        ['--data-dir', join(folder, 'etcd')],
        ['--listen-client-urls', at(client), '--advertise-client-urls', at(client)],
        ['--listen-peer-urls', at(peer), '--initial-advertise-peer-urls', at(peer)],
        ['--initial-cluster', `default=${at(peer)}`],
      ].flat(),
      { stdio: ['ignore', output, output] },
    );
    try {
      const [first, second] = nodes as [Node, Node];
      first.start();
      await until(() => first.isReady(), 60_000);
      second.start();
      await until(() => (synchronous ? second.isSynchronous() : second.isReplica()), 60_000);
    } catch (error) {
      await cluster.discard();
      throw error;
    }
    return cluster;
  }

  /** The primary, and the other one. */
  async roles(): Promise<[Node, Node]> {
    const [first, second] = this.nodes as [Node, Node];
    return (await first.isReady()) ? [first, second] : [second, first];
  }

  async discard(): Promise<void> {
    for (const node of this.nodes) {
      await node.kill();
      await node.line.vanish();
    }
    if (this.etcd?.pid) await killFamily(this.etcd.pid);
  }
}

interface NodeSettings {
  name: string;
  port: number;
  advertised: string;
  control: number;
  client: number;
  data: string;
  synchronous: boolean;
}

const settingsOf = ({ name, port, advertised, control, client, data, synchronous }: NodeSettings) => `
scope: store
name: ${name}
restapi: { listen: "127.0.0.1:${control}", connect_address: "127.0.0.1:${control}" }
etcd3: { hosts: "127.0.0.1:${client}" }
bootstrap:
  dcs:
    ttl: ${LOCK_SECONDS}
    loop_wait: 2
    retry_timeout: 4
    maximum_lag_on_failover: 1073741824
    synchronous_mode: ${synchronous}
    postgresql:
      use_pg_rewind: true
      parameters: { max_connections: 150, shared_buffers: 32MB, wal_level: replica, hot_standby: "on", wal_log_hints: "on" }
  initdb: [{ encoding: UTF8 }, { locale: C.UTF-8 }, data-checksums]
postgresql:
  listen: "127.0.0.1:${port}"
  connect_address: "127.0.0.1:${advertised}"
  data_dir: ${data}
  bin_dir: ${BINARIES}
  pgpass: ${data}.pgpass
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
  parameters: { unix_socket_directories: "" }
  authentication:
    superuser: { username: postgres }
    replication: { username: postgres }
    rewind: { username: postgres }
`;
