import type { Response } from 'express';
import { WebAnswer } from '../http/answer';

// In milliseconds, as for any other answer: src/http/in-flight.ts.
const READ_TIMEOUT = 10_000;

/**
 * Sends lines, each slice when the client has read the one before. An error breaks the connection, so that part of an export
 * never looks like all of it.
 */
export class NdjsonAnswer extends WebAnswer {
  constructor(
    private readonly slices: AsyncIterable<string>,
    private readonly headers: Record<string, string> = {},
  ) {
    super();
  }

  override async sendTo(res: Response): Promise<void> {
    // It may take longer than the deadline of a request.
    res.req.exchange.takesLong();
    // CORS is for games in a browser.
    res.removeHeader('Access-Control-Allow-Origin');
    res.removeHeader('Access-Control-Expose-Headers');
    for await (const slice of this.slices) {
      if (!res.headersSent) {
        for (const name in this.headers) res.setHeader(name, this.headers[name]!);
        res.setHeader('Content-Type', 'application/x-ndjson');
      }
      if (res.destroyed || (!res.write(slice) && !(await drained(res)))) return;
    }
    res.end();
  }
}

/** False: the client is gone, or does not read. */
function drained(res: Response): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => res.destroy(), READ_TIMEOUT);
    const done = () => {
      clearTimeout(timer);
      res.off('drain', done);
      res.off('close', done);
      resolve(!res.destroyed);
    };
    res.on('drain', done);
    res.on('close', done);
  });
}
