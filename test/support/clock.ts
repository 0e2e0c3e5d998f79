import { Clock } from '../../src/platform/config/clock';

declare global {
  /** Whether a busy machine may take longer than the service's deadlines: not in test/load. */
  var isPatient: boolean;
}
const PACE = globalThis.isPatient ? 0.1 : 1;

/** A clock that tests stop and advance. It follows the real one until it is stopped; ages grow slower. */
export class TestClock extends Clock {
  private nowOffset = 0;
  private monotonicOffset = 0;
  private stopped: { now: number; monotonic: number } | undefined;

  override now(): number {
    return this.stopped?.now ?? super.now() + this.nowOffset;
  }

  override monotonic(): number {
    return this.stopped?.monotonic ?? super.monotonic() * PACE + this.monotonicOffset;
  }

  /** Advances the time of the app. PostgreSQL keeps its own. */
  advance(milliseconds: number): void {
    if (this.stopped) {
      this.stopped.now += milliseconds;
      this.stopped.monotonic += milliseconds;
    } else {
      this.nowOffset += milliseconds;
      this.monotonicOffset += milliseconds;
    }
  }

  /** Stops the clock, so that only `advance` moves it. */
  stop(): void {
    // Whole numbers make sums exact.
    this.stopped ??= { now: this.now(), monotonic: Math.ceil(this.monotonic()) };
  }

  /** Sets only the time of day, like an operator or NTP. */
  setTimeOfDay(now: number): void {
    if (this.stopped) this.stopped.now = now;
    else this.nowOffset += now - this.now();
  }

  /** Follows the real clock again. Ages don't decrease. */
  reset(): void {
    if (this.stopped) this.monotonicOffset = this.stopped.monotonic - super.monotonic() * PACE;
    this.stopped = undefined;
    this.nowOffset = 0;
  }
}
