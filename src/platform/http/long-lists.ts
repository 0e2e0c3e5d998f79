import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { WebResponse } from './response';
import { ConcurrencyLimit } from './concurrency-limit';

/** The rows of a list; a long list is sent in slices. */
export type Rows<Row> = Row[] | AsyncIterable<Row[]>;

/** A list with more rows, or with a longer text in a row, is a long list. */
export const SHORT_LIST = { rows: 500, text_bytes: 4000 };
export const SLICE_BYTES = 256 * 1024;

// Each running long list has one slice in memory.
export const LONG_LISTS = { accepted: 64, running: 32, each: 4 };
// In milliseconds, less than the deadline of the request.
const MAX_WAIT = 1500;

/** Sends lists of any length. */
@Injectable()
export class LongLists {
  private readonly limit = new ConcurrencyLimit(LONG_LISTS);

  /** `{...head, "NAME": [...]}`. */
  response<Row, Name extends string, Entry extends object, Head extends object = object>(
    name: Name,
    rows: Rows<Row>,
    entryOf: (row: Row) => Entry,
    head?: Head,
  ): (Head & Record<Name, Entry[]>) | LongList<Row> {
    if (Array.isArray(rows)) return { ...head, [name]: rows.map(entryOf) } as Head & Record<Name, Entry[]>;
    return new LongList(this, JSON.stringify({ ...head, [name]: [] }), rows, entryOf);
  }

  /**
   * Sends each text after the client has read the previous one, when it is the client's turn; rejects with 503 after
   * MAX_WAIT. A later error breaks the connection, so that a partial response never looks complete.
   */
  send(res: Response, headers: Record<string, string>, texts: AsyncIterable<string>): Promise<void> {
    return this.limit.run(res.req.exchange.client, AbortSignal.timeout(MAX_WAIT), async () => {
      // The deadline may have sent a response, or the connection may be lost.
      if (res.writableEnded || res.destroyed) return;
      for (const name in headers) res.setHeader(name, headers[name]!);
      if (res.req.method !== 'HEAD') for await (const text of texts) if (!(await wasRead(res, text))) return;
      res.end();
    });
  }
}

export class LongList<Row> extends WebResponse {
  constructor(
    private readonly lists: LongLists,
    private readonly frame: string,
    private readonly slices: AsyncIterable<Row[]>,
    private readonly entryOf: (row: Row) => object,
  ) {
    super();
  }

  override sendTo(res: Response): Promise<void> {
    return this.lists.send(res, { 'Content-Type': 'application/json' }, this.texts());
  }

  private async *texts(): AsyncGenerator<string> {
    // Without the brackets that end the list and the response.
    let text = this.frame.slice(0, -2);
    let separator = '';
    for await (const rows of this.slices) {
      if (rows.length === 0) continue;
      yield text + separator + JSON.stringify(rows.map(this.entryOf)).slice(1, -1);
      separator = ',';
      text = '';
    }
    yield `${text}]}`;
  }
}

/** Writes, and waits until the client has read enough; returns false if the connection is lost. */
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
