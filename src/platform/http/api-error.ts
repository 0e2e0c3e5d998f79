/** An error with its status and texts. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly errors: string[],
    readonly headers: Record<string, string> = {},
  ) {
    super(errors.join('; '));
  }
}

export const apiError = (status: number, ...errors: string[]) => new ApiError(status, errors);

export const badRequest = (...errors: string[]) => apiError(400, ...errors);
export const serviceUnavailable = (seconds = 1) =>
  new ApiError(503, ['service unavailable'], { 'Retry-After': String(seconds) });
