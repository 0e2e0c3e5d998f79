import { Injectable } from '@nestjs/common';
import { Clock } from '../../platform/config/clock';
import { serviceUnavailable } from '../../platform/errors/api-error';

const RESET_WAIT_MS = 5000;
const CHECK_MS = 50;

/** Lets a reset wait for the requests in flight, and new requests wait for the reset. */
@Injectable()
export class ResetLock {
  private running = 0;
  private idle: (() => void) | undefined;
  private resets: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(private readonly clock: Clock) {}

  /** Whether a reset is running, or waits for requests in flight. */
  get isResetting(): boolean {
    return this.waiting > 0;
  }

  /** Waits while the store is being reset. */
  async enter(): Promise<void> {
    const deadline = this.maxWait();
    while (this.isResetting) await this.before(deadline, this.resets);
    this.running++;
  }

  leave(): void {
    this.running--;
    if (this.running === 0) this.idle?.();
  }

  /** Runs one reset after the other, each when no request is in flight. */
  reset<Result>(work: () => Promise<Result>): Promise<Result> {
    this.waiting++;
    const result = this.resets.then(async () => {
      try {
        await this.untilIdle();
        return await work();
      } finally {
        this.waiting--;
      }
    });
    this.resets = result.catch(() => undefined);
    return result;
  }

  private untilIdle(): Promise<void> {
    if (this.running === 0) return Promise.resolve();
    return this.before(this.maxWait(), new Promise<void>((resolve) => (this.idle = resolve)));
  }

  private maxWait(): number {
    return this.clock.monotonic() + RESET_WAIT_MS;
  }

  private before<Result>(deadline: number, promise: Promise<Result>): Promise<Result> {
    let timer: NodeJS.Timeout;
    const timeout = new Promise<never>((_, reject) => {
      timer = setInterval(() => {
        if (this.clock.monotonic() >= deadline) reject(serviceUnavailable(1));
      }, CHECK_MS);
    });
    return Promise.race([promise, timeout]).finally(() => clearInterval(timer));
  }
}
