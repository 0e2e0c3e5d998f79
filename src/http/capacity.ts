import type { Holdings } from './senders';

// The rest is for addresses that hold less than an equal part of all.
const OPEN_TO_EVERYBODY = 3 / 4;

/**
 * Something that all requests share, of which no single address can take everything. While less than three quarters are
 * taken anybody may have more, so that one proxy which hides its clients' addresses can use most of it.
 */
export class Capacity {
  used = 0;
  /** How often there was none left for somebody. */
  refusals = 0;
  private senders = 0;

  constructor(
    readonly name: keyof Holdings,
    readonly total: number,
  ) {}

  take(sender: Holdings, amount = 1): boolean {
    const held = sender[this.name];
    const used = this.used + amount;
    if (used > this.total * OPEN_TO_EVERYBODY && (used > this.total || held + amount > this.partOf(held))) {
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

  /** An equal part for each address that holds some, and for one more that may come. */
  private partOf(held: number): number {
    return Math.max(1, this.total / (this.senders + (held === 0 ? 2 : 1)));
  }
}
