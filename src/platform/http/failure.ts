/** An error with its status and texts. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly errors: string[],
    readonly headers: Record<string, string> = {},
  ) {
    super(errors.join('; '));
  }
}

export const failure = (status: number, ...errors: string[]) => new Failure(status, errors);

export const badRequest = (...errors: string[]) => failure(400, ...errors);
export const serviceUnavailable = (seconds = 1) =>
  new Failure(503, ['service unavailable'], { 'Retry-After': String(seconds) });
