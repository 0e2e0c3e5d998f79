import type { Holdings } from './senders';

// The rest is reserved for addresses that hold less than an equal share.
const UNRESERVED = 3 / 4;

/**
 * A resource that all requests share, of which no address can take everything. Up to three quarters of it go to anybody,
 * so that a proxy which hides its clients' addresses can use most of it.
 */
export class Capacity {
  used = 0;
  /** How often `take` failed. */
  refusals = 0;
  private senders = 0;

  constructor(
    readonly name: keyof Holdings,
    readonly total: number,
  ) {}

  take(sender: Holdings, amount = 1): boolean {
    const held = sender[this.name];
    const used = this.used + amount;
    if (used > this.total * UNRESERVED && (used > this.total || held + amount > this.shareOf(held))) {
      this.refusals++;
      return false;
    }
    if (held === 0) this.senders++;
    sender[this.name] = held + amount;
    this.used = used;
    return true;
  }

  giveBack(sender: Holdings, amount = 1): void {
    this.used -= amount;
    sender[this.name] -= amount;
    if (sender[this.name] === 0) this.senders--;
  }

  /** An equal share for each address that holds some, and for one more. */
  private shareOf(held: number): number {
    return Math.max(1, this.total / (this.senders + (held === 0 ? 2 : 1)));
  }
}
