import { Clock } from '../config/clock';
import { serviceUnavailable } from '../errors/api-error';

/** How long work may wait for a limit during a request: less than the deadline of the response. */
export const MAX_WAIT_MS = 1500;

/** Work that a client has requested. */
export interface Work {
  readonly client: LimitedClient;
  begin(): void;
  /** Called instead of `begin` if the work is removed from the queue in favor of another client's. */
  reject(): void;
}

/** A client's work in a limit. */
interface ClientQueue {
  running: number;
  readonly waiting: Set<Work>;
  /** The queues of the surrounding networks, and how much of their work may run. */
  readonly networks: readonly { queue: ClientQueue; limit: number }[];
}

export interface LimitedClient {
  readonly queues: Map<ConcurrencyLimit, ClientQueue>;
  /** Networks whose clients together run at most a multiple of one client's work. */
  readonly networks?: readonly { client: LimitedClient; multiple: number }[];
}

export interface Limits {
  /** Running and waiting work of all clients. */
  accepted: number;
  /** Running work of all clients. */
  running?: number;
  /** Running work of one client. */
  each?: number;
  /** Running work of one client while no other client sends requests. */
  soleClientLimit?: number;
}

/** Maximum number of running requests of one IP address while other clients send requests. */
export const PER_CLIENT = 16;
// Enough to keep the connections of the pool busy. More would only delay the first request of another client.
const SOLE_CLIENT_LIMIT = 64;
// A client is the only one if no other client has sent a request for this long.
const SOLE_CLIENT_AFTER_MS = 1000;
// The clients of one network together get at most this share of a limit.
const NETWORK_SHARE = 3 / 4;

/**
 * Limits concurrent work. The rest of a client's work waits, first in, first out; clients alternate. When too much
 * waits, the newest work of the client with the most waiting work is rejected. (Libraries such as p-limit have one
 * queue for all.)
 */
export class ConcurrencyLimit {
  /** Running and waiting work. */
  accepted = 0;
  rejected = 0;
  /** The client of work that does not belong to a particular client. */
  readonly anyone: LimitedClient = { queues: new Map() };
  running = 0;
  private readonly limits: Required<Limits>;
  /** The clients with waiting work, in the order in which they are served. */
  private readonly roundRobin = new Set<ClientQueue>();
  private finished: ClientQueue[] = [];
  private latest: ClientQueue | undefined;
  private sharedUntil = 0;
  private rejectingSince = 0;

  constructor(
    { accepted, running = Infinity, each = PER_CLIENT, soleClientLimit = each }: Limits,
    private readonly clock = new Clock(),
  ) {
    this.limits = { accepted, running, each, soleClientLimit };
  }

  /** Creates a limit that one client can't use up, even if `accepted` is low. */
  static ofRequests(accepted: number, clock: Clock): ConcurrencyLimit {
    const each = Math.min(PER_CLIENT, Math.ceil(accepted / 2));
    const soleClientLimit = Math.min(SOLE_CLIENT_LIMIT, Math.ceil((accepted * 3) / 4));
    return new ConcurrencyLimit({ accepted, each, soleClientLimit }, clock);
  }

  /** How long work has been rejected while none began or finished. */
  get stuckFor(): number {
    return this.rejectingSince === 0 ? 0 : this.clock.monotonic() - this.rejectingSince;
  }

  /** Begins the work, now or when the limit allows it; returns false if the queue is full. */
  enter(work: Work): boolean {
    const queue = this.findQueue(work.client);
    if (this.accepted >= this.limits.accepted) {
      this.rejected++;
      this.rejectingSince ||= this.clock.monotonic();
      if (!this.displaceFor(queue)) return false;
    }
    this.accepted++;
    if (this.latest && queue !== this.latest)
      this.sharedUntil = this.clock.monotonic() + SOLE_CLIENT_AFTER_MS;
    this.latest = queue;
    if (queue.waiting.size === 0 && this.canBegin(queue)) this.begin(queue, work);
    else {
      queue.waiting.add(work);
      this.roundRobin.add(queue);
    }
    return true;
  }

  /**
   * Ends running work. The next begins later, in the check phase of the event loop: no client has more than its limit
   * of requests handled before other clients' sockets are read, even if each is finished immediately.
   */
  leave({ queues }: LimitedClient): void {
    if (this.finished.push(queues.get(this)!) === 1) setImmediate(() => this.startWaiting());
  }

  /** Rejects waiting work. Nothing happens to work that has begun. */
  cancel(work: Work): void {
    const queue = this.findQueue(work.client);
    if (!this.removeWaiting(queue, work)) return;
    this.accepted--;
    work.reject();
  }

  /**
   * Runs the work when the limit allows it. Rejects with 503 if the queue is full, or when `signal` aborts
   * the wait.
   */
  async run<Result>(
    client: LimitedClient,
    signal: AbortSignal | undefined,
    work: () => Promise<Result>,
    retryAfter?: number,
  ): Promise<Result> {
    await new Promise<void>((resolve, reject) => {
      const waiter: Work = { client, begin: resolve, reject: () => reject(serviceUnavailable(retryAfter)) };
      signal?.addEventListener('abort', () => this.cancel(waiter), { once: true });
      if (signal?.aborted || !this.enter(waiter)) waiter.reject();
    });
    try {
      return await work();
    } finally {
      this.leave(client);
    }
  }

  private findQueue({ queues, networks = [] }: LimitedClient): ClientQueue {
    let queue = queues.get(this);
    if (!queue) {
      queue = {
        running: 0,
        waiting: new Set(),
        networks: networks.map(({ client, multiple }) => ({
          queue: this.findQueue(client),
          limit: this.networkLimit(multiple),
        })),
      };
      queues.set(this, queue);
    }
    return queue;
  }

  private networkLimit(multiple: number): number {
    const { accepted, running, each } = this.limits;
    return Math.max(each, Math.min(each * multiple, Math.floor(Math.min(accepted, running) * NETWORK_SHARE)));
  }

  private canBegin({ running, networks }: ClientQueue): boolean {
    const { limits, sharedUntil } = this;
    if (this.running >= limits.running) return false;
    if (running < limits.each) return networks.every(({ queue, limit }) => queue.running < limit);
    return running < limits.soleClientLimit && this.clock.monotonic() >= sharedUntil;
  }

  private begin(queue: ClientQueue, work: Work): void {
    this.count(queue, 1);
    this.rejectingSince = 0;
    work.begin();
  }

  private count(queue: ClientQueue, change: 1 | -1): void {
    this.running += change;
    queue.running += change;
    for (const network of queue.networks) network.queue.running += change;
  }

  private startWaiting(): void {
    for (const queue of this.finished) this.count(queue, -1);
    this.accepted -= this.finished.length;
    this.finished = [];
    this.rejectingSince = 0;
    // One of each client per round, until a round begins none.
    for (let skipped = 0; skipped < this.roundRobin.size;) {
      const [queue] = this.roundRobin as Iterable<ClientQueue> as [ClientQueue];
      const canBegin = this.canBegin(queue);
      skipped = canBegin ? 0 : skipped + 1;
      // Moves the queue to the end.
      this.roundRobin.delete(queue);
      if (canBegin) {
        const [work] = queue.waiting as Iterable<Work> as [Work];
        queue.waiting.delete(work);
        this.begin(queue, work);
      }
      if (queue.waiting.size > 0) this.roundRobin.add(queue);
    }
  }

  private removeWaiting(queue: ClientQueue, work: Work): boolean {
    const wasWaiting = queue.waiting.delete(work);
    if (queue.waiting.size === 0) this.roundRobin.delete(queue);
    return wasWaiting;
  }

  /** Rejects the newest work of the client with the most waiting work, if that is more than this one's. */
  private displaceFor({ waiting }: ClientQueue): boolean {
    let longest: ClientQueue | undefined;
    for (const queue of this.roundRobin)
      if (queue.waiting.size > (longest?.waiting ?? waiting).size) longest = queue;
    if (!longest) return false;
    const newest = [...longest.waiting].at(-1)!;
    this.removeWaiting(longest, newest);
    this.accepted--;
    newest.reject();
    return true;
  }
}
