import { Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import { isPreflight } from '../http/front-door';
import { RateLimitsService } from './rate-limits.service';

/** Requests that no route takes meet no guard: they are counted for their address here. */
@Injectable()
export class UnroutedLimit implements OnModuleInit {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly limits: RateLimitsService,
  ) {}

  /** By now all routes are known to the router, and what answers in their absence is not: this comes in between. */
  onModuleInit(): void {
    if (!this.limits.limits) return;
    this.host.httpAdapter?.use(async (req: Request, res: Response, next: NextFunction) => {
      // A browser sends a preflight before the request, which is counted.
      if (!isPreflight(req)) await this.limits.spendAddress(req, res);
      next();
    });
  }
}
