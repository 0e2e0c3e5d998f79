import { Injectable } from '@nestjs/common';

/** Up to a fifth less than this interval, so that replicas don't do the same work in the same second. */
export const staggered = (milliseconds: number) => milliseconds * (0.8 + Math.random() / 5);

/** The current time. Everything that expires, waits or is limited uses the clock, so that tests can advance it. */
@Injectable()
export class Clock {
  /** Milliseconds since 1970, like `Date.now()`. For times that others see, such as the expiry of a token. */
  now(): number {
    return Date.now();
  }

  /**
   * Milliseconds since an arbitrary start, like `performance.now()`. For ages and waits: correcting the time of day
   * doesn't change it.
   */
  monotonic(): number {
    return performance.now();
  }
}
