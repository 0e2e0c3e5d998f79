import { Injectable } from '@nestjs/common';
import { serviceUnavailable } from '../../platform/http/api-error';
import { Capacity, type Sender } from '../../platform/http/senders';
import { MAX_BYTES } from './small-import';

/** Large imports of one process: one at work, and those that wait. */
export const MAX_LARGE = 8;
/** Of imports that may be small, from their first byte to their answer. */
export const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** Seconds: a large import takes longer than a request. */
const RETRY_AFTER = 10;

/** Bounds what imports over HTTP take of the process. No address gets all of it. */
@Injectable()
export class ImportRoom {
  private readonly places = new Capacity('imports', MAX_LARGE);
  private readonly bytes = new Capacity('importBytes', MAX_HELD_BYTES);
  private readonly waiting = new Set<() => void>();
  private isBusy = false;

  /** One at a time, in the order in which they came. What waits has no thread and is not read: its sender has to wait. */
  async inTurn<Result>(sender: Sender, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    if (!this.places.take(sender)) throw serviceUnavailable(RETRY_AFTER);
    try {
      await this.turn(signal);
      return await work().finally(() => this.nextTurn());
    } finally {
      this.places.giveBack(sender);
    }
  }

  /** The stream holds its bytes until the work ends. A large import holds no more than was read to know that it is large. */
  async holding<Result>(
    sender: Sender,
    source: AsyncIterable<Buffer>,
    work: (stream: AsyncGenerator<Buffer>) => Promise<Result>,
  ): Promise<Result> {
    const { bytes } = this;
    let held = 0;
    const stream = (async function* () {
      for await (const chunk of source) {
        if (held <= MAX_BYTES) {
          if (!bytes.take(sender, chunk.length)) throw serviceUnavailable();
          held += chunk.length;
        }
        yield chunk;
      }
    })();
    try {
      return await work(stream);
    } finally {
      if (held > 0) bytes.giveBack(sender, held);
    }
  }

  private turn(signal: AbortSignal): Promise<void> | void {
    if (!this.isBusy) {
      this.isBusy = true;
      return;
    }
    return new Promise((resolve, reject) => {
      const start = () => {
        this.waiting.delete(start);
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.waiting.delete(start);
        reject(signal.reason);
      };
      this.waiting.add(start);
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) leave();
    });
  }

  private nextTurn(): void {
    const [first] = this.waiting;
    if (first) first();
    else this.isBusy = false;
  }
}
