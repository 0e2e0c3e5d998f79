import { once } from 'node:events';
import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { isOver, WebResponse } from './response';
import { ConcurrencyLimit, MAX_WAIT_MS } from '../limits/concurrency-limit';

/** The rows of a list; a long list is sent in slices. */
export type RowsOrSlices<Row> = Row[] | AsyncIterable<Row[]>;

/** A list with more rows, or with a longer text in a row, is a long list. */
export const SHORT_LIST = { rows: 500, text_bytes: 4000 };
export const SLICE_BYTES = 256 * 1024;

// Each running long list has a slice in memory. Slow clients need as many IP addresses to use up this limit as to use up
// MAX_IN_FLIGHT.
export const LONG_LISTS = { accepted: 256, running: 128, each: 4 };

/** Sends lists of any length. */
@Injectable()
export class ListStreams {
  readonly limit = new ConcurrencyLimit(LONG_LISTS);

  /** Creates the response `{...head, "NAME": [...]}`. */
  response<Row, Name extends string, Entry extends object, Head extends object = object>(
    name: Name,
    rows: RowsOrSlices<Row>,
    toEntry: (row: Row) => Entry,
    head?: Head,
  ): (Head & Record<Name, Entry[]>) | LongResponse {
    if (Array.isArray(rows)) return { ...head, [name]: rows.map(toEntry) } as Head & Record<Name, Entry[]>;
    const frame = JSON.stringify({ ...head, [name]: [] });
    return new LongResponse(
      this.limit,
      { 'Content-Type': 'application/json' },
      streamList(frame, rows, toEntry),
    );
  }
}

async function* streamList<Row>(
  frame: string,
  slices: AsyncIterable<Row[]>,
  toEntry: (row: Row) => object,
): AsyncGenerator<string> {
  // The brackets that end the list and the response are sent at the end.
  let text = frame.slice(0, -2);
  let separator = '';
  for await (const rows of slices) {
    if (rows.length === 0) continue;
    yield text + separator + JSON.stringify(rows.map(toEntry)).slice(1, -1);
    separator = ',';
    text = '';
  }
  yield `${text}]}`;
}

/** Headers by name; undefined: the response omits the header. */
type Headers = Record<string, string | undefined>;

/** The headers of a file that only its user may read: CORS is for games in a browser. */
export const PRIVATE_FILE: Headers = {
  'Access-Control-Allow-Origin': undefined,
  'Access-Control-Expose-Headers': undefined,
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/**
 * Sends each text after the client has read the previous one, when the limit allows it; rejects with 503
 * after MAX_WAIT_MS. A later error breaks the connection, so that a partial response never looks complete.
 * `takesLong`: the first text may take longer than the deadline of a request.
 */
export class LongResponse extends WebResponse {
  private readonly takesLong: boolean;

  constructor(
    private readonly limit: ConcurrencyLimit,
    private readonly headers: Headers,
    private readonly texts: AsyncIterable<string>,
    { takesLong } = { takesLong: false },
  ) {
    super();
    this.takesLong = takesLong;
  }

  override sendTo(res: Response): Promise<void> {
    const { inFlight } = res.req;
    if (this.takesLong) inFlight.removeDeadline();
    return this.limit.run(inFlight.client, AbortSignal.timeout(MAX_WAIT_MS), () => this.send(res));
  }

  private async send(res: Response): Promise<void> {
    if (isOver(res)) return;
    const closed = new Promise((resolve) => res.once('close', resolve));
    for await (const text of this.texts) {
      if (isOver(res)) return;
      // An earlier error has different headers.
      if (!res.headersSent) this.setHeaders(res);
      if (res.req.method === 'HEAD') break;
      if (!res.write(text)) await Promise.race([once(res, 'drain'), closed]);
    }
    if (!isOver(res)) res.end();
  }

  private setHeaders(res: Response): void {
    for (const [name, value] of Object.entries(this.headers))
      if (value === undefined) res.removeHeader(name);
      else res.setHeader(name, value);
  }
}
