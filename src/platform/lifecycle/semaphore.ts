import type { Clock } from '../config/clock';

interface Waiter {
  /** `waited`: how long, in milliseconds. */
  acquired: (release: () => void, waited: number) => void;
  rejected: () => void;
}

interface Place {
  since: number;
  /** Cleared at the head of the queue: an array in V8's old generation keeps removed elements alive. */
  waiter: Waiter | undefined;
}

interface Limits {
  permits: number;
  /** How many may wait. */
  waiting?: number;
  /** For how many milliseconds: a waiter that waited longer is rejected at the head of the queue. */
  wait?: number;
}

/** Work holds a permit, or waits for one, first in, first out. */
export class Semaphore {
  private held = 0;
  private readonly queue: Place[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly limits: Limits,
  ) {}

  get waiting(): number {
    return this.queue.length;
  }

  acquire(acquired: Waiter['acquired'], rejected: Waiter['rejected']): void {
    const { permits, waiting = Infinity } = this.limits;
    if (this.held < permits) this.grant({ acquired, rejected }, 0);
    else if (this.queue.length >= waiting) rejected();
    else this.queue.push({ since: this.clock.monotonic(), waiter: { acquired, rejected } });
  }

  /** Runs the work with a permit; rejects with this error if too many wait, or if it waited too long. */
  run<Result>(work: () => Promise<Result>, rejection: () => Error): Promise<Result> {
    return new Promise((resolve, reject) =>
      this.acquire(
        (release) => void work().then(resolve, reject).finally(release),
        () => reject(rejection()),
      ),
    );
  }

  private grant({ acquired }: Waiter, waited: number): void {
    this.held++;
    acquired(() => {
      this.held--;
      this.grantNext();
    }, waited);
  }

  private grantNext(): void {
    const { wait = Infinity } = this.limits;
    for (let place = this.queue.shift(); place; place = this.queue.shift()) {
      const waiter = place.waiter!;
      place.waiter = undefined;
      const waited = this.clock.monotonic() - place.since;
      if (waited < wait) return this.grant(waiter, waited);
      waiter.rejected();
    }
  }
}
