interface Waiter {
  acquired: (release: () => void) => void;
  timedOut: () => void;
}

interface Place {
  since: number;
  /** Cleared when its turn comes: an array that V8 has made old keeps alive what was removed from it. */
  waiter: Waiter | undefined;
}

/** FIFO semaphore with a maximum wait: a waiter that waited longer is refused when its turn comes. */
export class Semaphore {
  private held = 0;
  private readonly queue: Place[] = [];

  constructor(
    private readonly permits: number,
    private readonly maxWait: number,
  ) {}

  get waiting(): number {
    return this.queue.length;
  }

  acquire(acquired: Waiter['acquired'], timedOut: Waiter['timedOut']): void {
    if (this.held < this.permits) this.grant({ acquired, timedOut });
    else this.queue.push({ since: performance.now(), waiter: { acquired, timedOut } });
  }

  private grant({ acquired }: Waiter): void {
    this.held++;
    acquired(() => {
      this.held--;
      this.grantNext();
    });
  }

  private grantNext(): void {
    for (let place = this.queue.shift(); place; place = this.queue.shift()) {
      const waiter = place.waiter!;
      place.waiter = undefined;
      if (performance.now() - place.since < this.maxWait) return this.grant(waiter);
      waiter.timedOut();
    }
  }
}
