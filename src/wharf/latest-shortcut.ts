import type { ServerResponse } from 'node:http';
import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Settings } from '../platform/config/settings';
import { ApiError } from '../platform/errors/api-error';
import { sendError, type Cacheable, sendCacheable } from '../platform/output/response';
import { hasBody } from '../platform/input/body';
import { RequestGate } from '../platform/server/request-gate';
import { RequestLog } from '../platform/observability/request-log';
import { RateLimitsService } from '../platform/limits/rate-limits.service';
import { BuildsService } from './builds.service';
import type { LatestRequest } from './latest.dto';

const ROUTE = { path: '/wharf/latest', methods: { get: true } };
const PATH = `${ROUTE.path}?`;
// URLs without anything to decode. The route handles all others.
const PLAIN_URL =
  /^\/wharf\/latest\?(?:game_id=([1-9]\d{0,14})|target=([\w.-]+\/[\w.-]+))&channel_name=([\w.-]+)$/;

function requestIn(url: string): LatestRequest | undefined {
  const [, game_id, target, channel_name] = PLAIN_URL.exec(url) ?? [];
  if (channel_name === undefined) return undefined;
  return { game_id: game_id === undefined ? undefined : Number(game_id), target, channel_name };
}

/**
 * Serves requests for the newest build before the router, which would take longer than everything else: every installed
 * copy of every game sends them. Limits, log and metrics are those of the route.
 */
@Injectable()
export class LatestShortcut implements OnApplicationBootstrap {
  private readonly cacheControl: string;

  constructor(
    private readonly builds: BuildsService,
    private readonly limits: RateLimitsService,
    settings: Settings,
    private readonly gate: RequestGate,
    private readonly log: RequestLog,
  ) {
    this.cacheControl = `public, max-age=${settings.LATEST_MAX_AGE}`;
  }

  onApplicationBootstrap(): void {
    this.gate.shortcut = { prefix: PATH, handles: (req, res) => this.handles(req as Request, res) };
  }

  /** For a request that the router handled. */
  async serve(request: LatestRequest, req: Request, res: Response): Promise<void> {
    // With parameters in the body the URL alone doesn't identify the response.
    const url = req.body ? undefined : PATH + req.url.slice(req.url.indexOf('?') + 1);
    const response = await this.builds.latest(request, url);
    sendCacheable(req, res, response, this.cacheControl);
  }

  private handles(req: Request, res: ServerResponse): boolean {
    if (req.method !== 'GET' || hasBody(req)) return false;
    const found = this.builds.cached(req.url) ?? requestIn(req.url);
    if (!found) return false;
    req.route = ROUTE;
    this.respond(req, res, found).catch((error: unknown) => sendError(this.log, res, error));
    return true;
  }

  private async respond(req: Request, res: ServerResponse, found: Cacheable | LatestRequest): Promise<void> {
    const isCached = 'body' in found;
    // A cached response isn't a failed lookup.
    if (!isCached) this.limits.check('address', req, res);
    await this.limits.spendAddress(req, res);
    try {
      const response = isCached ? found : await this.builds.latest(found, req.url);
      // The deadline may have sent a response already.
      if (!res.headersSent) sendCacheable(req, res, response, this.cacheControl);
    } catch (error) {
      if (error instanceof ApiError && error.statusCode === 404) void this.limits.failed('address', req);
      throw error;
    }
  }
}
