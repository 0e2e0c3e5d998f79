import { HttpException } from '@nestjs/common';

/** An error response: its status and messages. */
export class ApiError extends HttpException {
  constructor(
    status: number,
    readonly errors: string[],
    readonly headers: Record<string, string> = {},
  ) {
    super({ errors }, status);
    this.message = errors.join('; ');
  }

  get statusCode(): number {
    return this.getStatus();
  }
}

export const apiError = (status: number, ...errors: string[]) => new ApiError(status, errors);

export const badRequest = (...errors: string[]) => apiError(400, ...errors);
export const serviceUnavailable = (seconds = 1) =>
  new ApiError(503, ['service unavailable'], { 'Retry-After': String(seconds) });
/** The error of a quota whose items take minutes or hours to end, such as uploads. */
export const tooMany = (error: string, seconds = 60) =>
  new ApiError(429, [error], { 'Retry-After': String(seconds) });
