import { Agent, request } from 'node:http';
import { ALICE, type Tenant } from '../world/world';

/** An IP address that no other client of the fuzzer has. */
const ADDRESS = '127.0.0.2';
const EVERY = 50;
const PATIENCE = 15_000;

/** Results of the control client's requests. */
export interface Seen {
  /** Responses by result: right, late, wrong, a status, or a connection error. */
  results: Record<string, number>;
  slowest_ms: number;
  /** The first wrong response, if any. */
  wrong: string;
}

interface Reply {
  status: number;
  body: string;
}

/** An ordinary client: 20 small requests per second, independent of earlier results, each with one right response. */
export class RequestLoop {
  private readonly seen: Seen = { results: {}, slowest_ms: 0, wrong: '' };
  private readonly agent = new Agent({ keepAlive: true, localAddress: ADDRESS });
  private readonly pending = new Set<Promise<void>>();
  private readonly timer: NodeJS.Timeout;
  private readonly key: string;
  /** No other control client sends the same titles. */
  private readonly name = `ControlClient ${Date.now().toString(36)}`;
  private turn = 0;
  /** Titles are numbered. The current one is between the last confirmed write and the last one sent. */
  private titles = { certain: 0, sent: 0, pending: false, failed: -Infinity };

  constructor(
    private readonly base: string,
    private readonly tenant: Tenant,
    private readonly in_time: number,
    /** Whether each request uses a new connection. */
    private readonly connects: boolean,
  ) {
    this.key = tenant.key(ALICE);
    this.timer = setInterval(() => {
      const asked = this.ask(this.turn++).finally(() => this.pending.delete(asked));
      this.pending.add(asked);
    }, EVERY);
  }

  async stop(): Promise<Seen> {
    clearInterval(this.timer);
    await Promise.all(this.pending);
    this.agent.destroy();
    return this.seen;
  }

  private async ask(turn: number): Promise<void> {
    const begun = performance.now();
    const what = await this.takeTurn(turn).catch(
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    );
    const ms = performance.now() - begun;
    const { seen } = this;
    seen.slowest_ms = Math.max(seen.slowest_ms, ms);
    const result = what === 'right' && ms > this.in_time ? 'late' : what;
    seen.results[result] = (seen.results[result] ?? 0) + 1;
  }

  private takeTurn(turn: number): Promise<string> {
    const { tenant } = this;
    const collection = tenant.base + 1;
    switch (turn % 5) {
      case 0:
        return this.read('/profile', ({ user }: { user: { id: number } }) => user.id === tenant.user(ALICE));
      case 1:
        return this.read('/profile/collections', ({ collections }: { collections: { id: number }[] }) =>
          collections.some(({ id }) => id === collection),
        );
      case 2:
        return this.read(
          `/collections/${collection}/collection-games`,
          ({ collection_games: entries }: { collection_games: { game_id: number }[] }) =>
            entries.length === 2 && entries[0]!.game_id === tenant.base + 1,
        );
      case 3:
        return this.titles.pending ? this.readTitle(collection) : this.write(collection);
      default:
        return this.readTitle(collection);
    }
  }

  private async read<Body>(path: string, isRight: (body: Body) => boolean): Promise<string> {
    const { status, body } = await this.exchange('GET', path);
    if (status !== 200) return String(status);
    if (isRight(JSON.parse(body) as Body)) return 'right';
    this.seen.wrong ||= `${path}: ${body.slice(0, 300)}`;
    return 'wrong';
  }

  private readTitle(collection: number): Promise<string> {
    const { certain } = this.titles;
    return this.read(
      `/collections/${collection}`,
      ({ collection: { title } }: { collection: { title: string } }) => {
        if (!title.startsWith(this.name)) return certain === 0;
        const number = Number(title.slice(this.name.length));
        return number >= certain && number <= this.titles.sent;
      },
    );
  }

  private async write(collection: number): Promise<string> {
    const { titles } = this;
    const number = ++titles.sent;
    titles.pending = true;
    try {
      const title = encodeURIComponent(`${this.name} ${number}`);
      const { status } = await this.exchange('POST', `/collections/${collection}?title=${title}`);
      if (status !== 200) titles.failed = performance.now();
      // A write that failed in transit may still overtake this one.
      else if (performance.now() - titles.failed > PATIENCE) titles.certain = number;
      return status === 200 ? 'right' : String(status);
    } catch (error) {
      titles.failed = performance.now();
      throw error;
    } finally {
      titles.pending = false;
    }
  }

  /**
   * Every tenth request, or each, uses a new connection. Like any client, it retries when a kept-alive connection was just
   * closed.
   */
  private exchange(method: string, path: string, again = false): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const kept = again || (!this.connects && this.turn % 10 > 0);
      const outgoing = request(
        `${this.base}${path}`,
        {
          method,
          headers: { authorization: `Bearer ${this.key}` },
          ...(kept ? { agent: this.agent } : { agent: false, localAddress: ADDRESS }),
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            clearTimeout(timer);
            resolve({ status: response.statusCode!, body: Buffer.concat(chunks).toString() });
          });
        },
      );
      const timer = setTimeout(() => outgoing.destroy(new Error('no response')), PATIENCE);
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        if (error.code === 'ECONNRESET' && outgoing.reusedSocket && !again)
          resolve(this.exchange(method, path, true));
        else reject(error);
      });
      outgoing.end();
    });
  }
}
