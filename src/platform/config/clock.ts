import { Injectable } from '@nestjs/common';

/** The current time. Everything that expires, waits or is limited asks the clock, so that tests can advance it. */
@Injectable()
export class Clock {
  /** Milliseconds since 1970, as `Date.now()`. */
  now(): number {
    return Date.now();
  }
}
