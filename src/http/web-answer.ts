import type { Response } from 'express';

/** What a handler returns when its answer is not JSON with status 200: it writes itself. */
export abstract class WebAnswer {
  abstract sendTo(res: Response): void | Promise<void>;
}
