import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Settings } from '../platform/config/settings';
import { ApiError } from '../platform/errors/api-error';
import { RateLimitsService } from '../platform/limits/rate-limits.service';
import { sendCacheable } from '../platform/output/response';
import { BuildsService } from './builds.service';
import type { LatestRequest } from './latest.dto';

/** Responds to requests for the newest build, also those to the legacy path. */
@Injectable()
export class NewestBuilds {
  private readonly cacheControl: string;

  constructor(
    private readonly builds: BuildsService,
    private readonly limits: RateLimitsService,
    { LATEST_MAX_AGE }: Settings,
  ) {
    this.cacheControl = `public, max-age=${LATEST_MAX_AGE}`;
  }

  async send(request: LatestRequest, req: Request, res: Response): Promise<void> {
    // A network with too many failed lookups still gets the builds that were requested recently.
    if (!this.builds.isCached(request)) this.limits.check('address', req, res);
    try {
      const response = await this.builds.latest(request);
      // The deadline may have sent a response already.
      if (!res.headersSent) sendCacheable(req, res, response, this.cacheControl);
    } catch (error) {
      if (error instanceof ApiError && error.statusCode === 404) void this.limits.failed('address', req);
      throw error;
    }
  }
}
