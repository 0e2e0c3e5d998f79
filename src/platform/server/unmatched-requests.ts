import { Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import { RateLimitsService } from '../limits/rate-limits.service';
import { isPreflight } from '../output/default-headers';

/**
 * Counts requests that match no route toward the limit of their IP address, because no guard runs for them.
 */
@Injectable()
export class UnmatchedRequests implements OnModuleInit {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly limits: RateLimitsService,
  ) {}

  onModuleInit(): void {
    if (!this.limits.rates) return;
    // Nest has registered all routes by now, and registers its 404 handler later.
    this.host.httpAdapter?.use(async (req: Request, res: Response, next: NextFunction) => {
      // A preflight doesn't count: the request after it does.
      if (!isPreflight(req)) await this.limits.chargeAddress(req, res);
      next();
    });
  }
}
