import { Injectable, type NestMiddleware } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { apiError } from '../../platform/errors/api-error';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import { OperatorTokensService } from './operator-tokens.service';

/**
 * Responds with 404 to every path under `/operator` while no token exists, because the router would return
 * 405 for some methods.
 */
@Injectable()
export class OperatorPathsMiddleware implements NestMiddleware {
  constructor(
    private readonly tokens: OperatorTokensService,
    private readonly limits: RateLimitsService,
  ) {}

  async use(req: Request, res: Response, next: NextFunction): Promise<void> {
    if (await this.tokens.exist()) return next();
    // The response doesn't wait for the rest of the body, which may be an import.
    if (!req.complete) req.inFlight.connection.closeAfter(res);
    // The request doesn't reach the guard that would count it.
    await this.limits.chargeAddress(req, res);
    throw apiError(404, 'invalid api endpoint');
  }
}
