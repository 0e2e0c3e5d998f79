import { Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import { isPreflight } from '../http/front-door';
import { RateLimitsService } from './rate-limits.service';

/** Counts requests that match no route, and so pass no guard, for their address. */
@Injectable()
export class UnroutedLimit implements OnModuleInit {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly limits: RateLimitsService,
  ) {}

  /** Runs after all routes are registered and before the 404 handler is. */
  onModuleInit(): void {
    if (!this.limits.limits) return;
    this.host.httpAdapter?.use(async (req: Request, res: Response, next: NextFunction) => {
      // A preflight does not count: the request after it does.
      if (!isPreflight(req)) await this.limits.spendAddress(req, res);
      next();
    });
  }
}
