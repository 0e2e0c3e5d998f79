import type { Response } from 'express';
import { sendJson, WebResponse } from '../../platform/output/response';

/** The response to a script of a page. */
export class JsonResponse extends WebResponse {
  constructor(private readonly body: object) {
    super();
  }

  override sendTo(res: Response): void {
    res.removeHeader('Access-Control-Allow-Origin');
    sendJson(res, 200, JSON.stringify(this.body));
  }
}
