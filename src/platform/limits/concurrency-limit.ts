import { Clock } from '../config/clock';
import { serviceUnavailable } from '../errors/api-error';

/** Work that a client has requested. */
export interface Work {
  readonly client: LimitedClient;
  begin(): void;
  /** Called instead of `begin` if the work is removed from the queue in favor of another client's. */
  reject(): void;
}

/** A client's state in a limit. */
interface Lane {
  running: number;
  readonly waiting: Work[];
}

export interface LimitedClient {
  readonly lanes: Map<ConcurrencyLimit, Lane>;
}

export interface Limits {
  /** Running and waiting work of all clients. */
  accepted: number;
  /** Running work of all clients. */
  running?: number;
  /** Running work of one client. */
  each?: number;
  /** The same while no other client requests anything. */
  alone?: number;
}

/** The maximum for one IP address in any case. */
export const PER_CLIENT = 16;
// Enough to keep the connections of the pool busy. More would only delay the first request of another client.
const ALONE = 64;
// In milliseconds: for this long after a request of another client, a client is not alone.
const ALONE_AFTER = 1000;

/**
 * Limits concurrent work. The rest of a client's work waits, first in, first out; clients alternate. When too much
 * waits, the newest work of the client with the most waiting work is rejected. (Libraries such as p-limit have one
 * queue for all.)
 */
export class ConcurrencyLimit {
  /** Running and waiting. */
  accepted = 0;
  rejected = 0;
  /** Used for work that does not belong to one client. */
  readonly anyone: LimitedClient = { lanes: new Map() };
  running = 0;
  private readonly limits: Required<Limits>;
  /** Lanes with waiting work, in the order in which they are served. */
  private turns: Lane[] = [];
  private finished: Lane[] = [];
  private latest: Lane | undefined;
  private sharedUntil = 0;
  private rejectingSince = 0;

  constructor(
    { accepted, running = Infinity, each = PER_CLIENT, alone = each }: Limits,
    private readonly clock = new Clock(),
  ) {
    this.limits = { accepted, running, each, alone };
  }

  /** Even if few are accepted, no client gets all of it. */
  static ofRequests(accepted: number, clock: Clock): ConcurrencyLimit {
    const each = Math.min(PER_CLIENT, Math.ceil(accepted / 2));
    const alone = Math.min(ALONE, Math.ceil((accepted * 3) / 4));
    return new ConcurrencyLimit({ accepted, each, alone }, clock);
  }

  /** Milliseconds for which work has been rejected while none began or finished. */
  get stuckFor(): number {
    return this.rejectingSince === 0 ? 0 : this.clock.monotonic() - this.rejectingSince;
  }

  /** Begins the work, now or when the limit allows it; returns false if the queue is full. */
  enter(work: Work): boolean {
    const lane = this.laneOf(work.client);
    if (this.accepted >= this.limits.accepted) {
      this.rejected++;
      this.rejectingSince ||= this.clock.monotonic();
      if (!this.displaceFor(lane)) return false;
    }
    this.accepted++;
    if (this.latest && lane !== this.latest) this.sharedUntil = this.clock.monotonic() + ALONE_AFTER;
    this.latest = lane;
    if (lane.waiting.length === 0 && this.canBegin(lane)) this.begin(lane, work);
    else if (lane.waiting.push(work) === 1) this.turns.push(lane);
    return true;
  }

  /**
   * Ends running work. The next begins later, in the check phase of the event loop: no client has more than its limit
   * of requests handled before other clients' sockets are read, even if each is finished immediately.
   */
  leave({ lanes }: LimitedClient): void {
    if (this.finished.push(lanes.get(this)!) === 1) setImmediate(() => this.settle());
  }

  /** Rejects waiting work. Nothing happens to work that has begun. */
  cancel(work: Work): void {
    const { waiting } = this.laneOf(work.client);
    const i = waiting.indexOf(work);
    if (i < 0) return;
    waiting.splice(i, 1);
    this.accepted--;
    work.reject();
  }

  /** Runs the work when the limit allows it. Rejects with 503 if the queue is full, or when `signal` aborts the wait. */
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

  private laneOf({ lanes }: LimitedClient): Lane {
    let lane = lanes.get(this);
    if (!lane) lanes.set(this, (lane = { running: 0, waiting: [] }));
    return lane;
  }

  private canBegin({ running }: Lane): boolean {
    const { limits, sharedUntil } = this;
    const most = running >= limits.each && this.clock.monotonic() >= sharedUntil ? limits.alone : limits.each;
    return this.running < limits.running && running < most;
  }

  private begin(lane: Lane, work: Work): void {
    lane.running++;
    this.running++;
    this.rejectingSince = 0;
    work.begin();
  }

  private settle(): void {
    for (const lane of this.finished) {
      lane.running--;
      this.running--;
      this.accepted--;
    }
    this.finished = [];
    this.rejectingSince = 0;
    // One of each client per round, until a round begins none.
    for (let skipped = 0; skipped < this.turns.length;) {
      const lane = this.turns.shift()!;
      const canBegin = lane.waiting.length > 0 && this.canBegin(lane);
      skipped = canBegin ? 0 : skipped + 1;
      if (canBegin) this.begin(lane, lane.waiting.shift()!);
      if (lane.waiting.length > 0) this.turns.push(lane);
    }
  }

  /** Rejects the newest work of the client with the most waiting work, if that is more than this one's. */
  private displaceFor({ waiting }: Lane): boolean {
    const longest = this.turns.reduce<Lane | undefined>(
      (most, lane) => (lane.waiting.length > (most?.waiting.length ?? waiting.length) ? lane : most),
      undefined,
    );
    if (!longest) return false;
    this.accepted--;
    longest.waiting.pop()!.reject();
    return true;
  }
}
