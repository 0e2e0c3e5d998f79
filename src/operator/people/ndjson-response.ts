import type { Response } from 'express';
import { WebResponse } from '../../platform/http/response';
import type { ConcurrencyLimit } from '../../platform/http/concurrency-limit';
import { wasRead } from '../../platform/http/long-lists';

// In milliseconds.
const MAX_WAIT = 1500;

/**
 * Sends lines in slices, each after the client has read the previous one. An error breaks the connection, so that a
 * partial export never looks complete.
 */
export class NdjsonResponse extends WebResponse {
  constructor(
    private readonly limit: ConcurrencyLimit,
    private readonly slices: AsyncIterable<string>,
    private readonly headers: Record<string, string> = {},
  ) {
    super();
  }

  override sendTo(res: Response): Promise<void> {
    const { exchange } = res.req;
    // It may take longer than the deadline of a request.
    exchange.takesLong();
    return this.limit.run(exchange.client, AbortSignal.timeout(MAX_WAIT), () => this.send(res));
  }

  private async send(res: Response): Promise<void> {
    // CORS is for games in a browser.
    res.removeHeader('Access-Control-Allow-Origin');
    res.removeHeader('Access-Control-Expose-Headers');
    res.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
    for await (const slice of this.slices) {
      if (!res.headersSent) {
        for (const name in this.headers) res.setHeader(name, this.headers[name]!);
        res.setHeader('Content-Type', 'application/x-ndjson');
      }
      if (!(await wasRead(res, slice))) return;
    }
    res.end();
  }
}
