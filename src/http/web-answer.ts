import type { Response } from 'express';

/** An answer of a handler that is not JSON with status 200, and sends itself. */
export abstract class WebAnswer {
  abstract sendTo(res: Response): void | Promise<void>;
}
