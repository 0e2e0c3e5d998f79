import type { Response } from 'express';
import { WebResponse } from '../../platform/http/answer';
import { READ_TIMEOUT } from '../../platform/http/in-flight';
import { wasRead } from '../../platform/http/long-lists';

/**
 * Sends lines, each slice when the client has read the one before. An error breaks the connection, so that part of an export
 * never looks like all of it.
 */
export class NdjsonResponse extends WebResponse {
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
      const timer = setTimeout(() => res.destroy(), READ_TIMEOUT);
      const read = await wasRead(res, slice);
      clearTimeout(timer);
      if (!read) return;
    }
    res.end();
  }
}
