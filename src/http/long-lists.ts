import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { serviceUnavailable } from './failure';
import { WebAnswer } from './web-answer';

/** The rows of a list; of a long one in slices, which are read when they are asked for. */
export type Rows<Row> = Row[] | AsyncIterable<Row[]>;

/** A list with more rows than this, or with a text of more bytes among them, is a long one. */
export const SHORT_LIST = { rows: 500, text_bytes: 4000 };
export const SLICE_BYTES = 256 * 1024;

// Each holds one slice in memory. Somebody's own are few, so that there is always room for others'.
const AT_ONCE = 8;
const AT_ONCE_PER_USER = 2;
// Milliseconds, less than the request's own deadline.
const WAITS_FOR = 1500;

interface Waiting {
  user_id: number;
  start: () => void;
  timer: NodeJS.Timeout;
}

/** Answers lists, however long they are. */
@Injectable()
export class LongLists {
  private readonly underWay: number[] = [];
  private waiting: Waiting[] = [];

  /** `{"NAME": [...]}`, with what stands before the list. */
  answer<Row, Name extends string, Entry extends object, Head extends object = object>(
    name: Name,
    user_id: number,
    rows: Rows<Row>,
    entryOf: (row: Row) => Entry,
    head?: Head,
  ): (Head & Record<Name, Entry[]>) | LongList<Row> {
    if (Array.isArray(rows)) return { ...head, [name]: rows.map(entryOf) } as Head & Record<Name, Entry[]>;
    return new LongList(this, JSON.stringify({ ...head, [name]: [] }), user_id, rows, entryOf);
  }

  /** Waits until there is room for one more; rejects with 503 when that takes too long. */
  enter(user_id: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { user_id, start: resolve, timer: setTimeout(() => giveUp(), WAITS_FOR) };
      const giveUp = () => {
        this.waiting = this.waiting.filter((one) => one !== waiting);
        reject(serviceUnavailable());
      };
      this.waiting.push(waiting);
      this.startNext();
    });
  }

  leave(user_id: number): void {
    this.underWay.splice(this.underWay.indexOf(user_id), 1);
    this.startNext();
  }

  private startNext(): void {
    const next = this.waiting.find(({ user_id }) => this.hasRoomFor(user_id));
    if (!next) return;
    this.waiting = this.waiting.filter((one) => one !== next);
    clearTimeout(next.timer);
    this.underWay.push(next.user_id);
    next.start();
  }

  private hasRoomFor(user_id: number): boolean {
    const own = this.underWay.filter((one) => one === user_id).length;
    return this.underWay.length < AT_ONCE && own < AT_ONCE_PER_USER;
  }
}

/**
 * Sends a slice when the one before it was read: neither memory nor the event loop bears more than one. An error in between
 * breaks the connection, so that half a list never looks like a whole one.
 */
export class LongList<Row> extends WebAnswer {
  constructor(
    private readonly lists: LongLists,
    private readonly frame: string,
    private readonly user_id: number,
    private readonly slices: AsyncIterable<Row[]>,
    private readonly entryOf: (row: Row) => object,
  ) {
    super();
  }

  override async sendTo(res: Response): Promise<void> {
    await this.lists.enter(this.user_id);
    try {
      await this.send(res);
    } finally {
      this.lists.leave(this.user_id);
    }
  }

  private async send(res: Response): Promise<void> {
    // Meanwhile the deadline was faster, or the caller is gone.
    if (res.writableEnded || res.destroyed) return;
    res.setHeader('Content-Type', 'application/json');
    if (res.req.method === 'HEAD') {
      res.end();
      return;
    }
    // Without the brackets that end the list and the answer.
    let text = this.frame.slice(0, -2);
    let separator = '';
    for await (const rows of this.slices) {
      if (rows.length === 0) continue;
      text += separator + JSON.stringify(rows.map(this.entryOf)).slice(1, -1);
      separator = ',';
      if (!(await wasRead(res, text))) return;
      text = '';
    }
    res.end(`${text}]}`);
  }
}

/** Writes, and waits until there is room for more; false: the caller is gone. */
async function wasRead(res: Response, text: string): Promise<boolean> {
  if (!res.destroyed && !res.write(text))
    await new Promise<void>((resolve) => {
      const done = () => {
        res.off('drain', done);
        res.off('close', done);
        resolve();
      };
      res.on('drain', done);
      res.on('close', done);
    });
  return !res.destroyed;
}
