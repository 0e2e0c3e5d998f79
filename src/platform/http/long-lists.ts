import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { serviceUnavailable } from './api-error';
import { WebResponse } from './answer';

/** The rows of a list; a long list comes in slices. */
export type Rows<Row> = Row[] | AsyncIterable<Row[]>;

/** A list with more rows, or with a longer text in a row, is a long list. */
export const SHORT_LIST = { rows: 500, text_bytes: 4000 };
export const SLICE_BYTES = 256 * 1024;

// Each long list holds one slice in memory.
export const MAX_RUNNING = 8;
export const MAX_RUNNING_PER_USER = 2;
// In milliseconds, less than the deadline of the request.
const MAX_WAIT = 1500;

interface Waiting {
  user_id: number;
  start: () => void;
  timer: NodeJS.Timeout;
}

/** Answers lists of any length. */
@Injectable()
export class LongLists {
  /** The users of the lists that are being sent. */
  private readonly running: number[] = [];
  private waiting: Waiting[] = [];

  /** `{...head, "NAME": [...]}`. */
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

  /** Waits for its turn; rejects with 503 after MAX_WAIT. */
  enter(user_id: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { user_id, start: resolve, timer: setTimeout(() => giveUp(), MAX_WAIT) };
      const giveUp = () => {
        this.waiting = this.waiting.filter((one) => one !== waiting);
        reject(serviceUnavailable());
      };
      this.waiting.push(waiting);
      this.startNext();
    });
  }

  leave(user_id: number): void {
    this.running.splice(this.running.indexOf(user_id), 1);
    this.startNext();
  }

  private startNext(): void {
    const next = this.waiting.find(({ user_id }) => this.mayStart(user_id));
    if (!next) return;
    this.waiting = this.waiting.filter((one) => one !== next);
    clearTimeout(next.timer);
    this.running.push(next.user_id);
    next.start();
  }

  private mayStart(user_id: number): boolean {
    const own = this.running.filter((one) => one === user_id).length;
    return this.running.length < MAX_RUNNING && own < MAX_RUNNING_PER_USER;
  }
}

/** Sends each slice when the client has read the previous one. After an error the connection breaks, and never just ends. */
export class LongList<Row> extends WebResponse {
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
    // The deadline may have answered, or the connection may be lost.
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

/** Writes, and waits until the client has read enough; false: the connection is lost. */
export async function wasRead(res: Response, text: string): Promise<boolean> {
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
