import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Settings } from '../platform/config/settings';
import { answerError, type Cacheable, sendCacheable } from '../platform/http/answer';
import { hasBody } from '../platform/http/body';
import { RequestGate } from '../platform/http/request-gate';
import type { RequestLog } from '../platform/observability/request-log';
import { RateLimitsService } from '../platform/rate-limits/rate-limits.service';
import { BuildsService } from './builds.service';
import type { LatestRequest } from './latest.dto';

const PATH = '/wharf/latest?';
// URLs without anything to decode. The route reads all others.
const PLAIN_URL =
  /^\/wharf\/latest\?(?:game_id=([1-9]\d{0,14})|target=([\w.-]+\/[\w.-]+))&channel_name=([\w.-]+)$/;

function requestIn(url: string): LatestRequest | undefined {
  const [, game_id, target, channel_name] = PLAIN_URL.exec(url) ?? [];
  if (channel_name === undefined) return undefined;
  return { game_id: game_id === undefined ? undefined : Number(game_id), target, channel_name };
}

/**
 * Answers requests for the newest build before the router, which would take longer than all the rest: every installed copy
 * of every game asks. Limits, log and metrics are those of the route.
 */
@Injectable()
export class LatestShortcut {
  private readonly cacheControl: string;
  private readonly log: RequestLog;
  /** The matched route, for log, metrics and traces. */
  route: Request['route'];

  constructor(
    private readonly builds: BuildsService,
    private readonly limits: RateLimitsService,
    settings: Settings,
    gate: RequestGate,
  ) {
    this.cacheControl = `public, max-age=${settings.LATEST_MAX_AGE}`;
    this.log = gate.log;
    gate.shortcut = { prefix: PATH, answers: (req, res) => this.answers(req as Request, res) };
  }

  /** For a request that the router took. */
  async serve(request: LatestRequest, req: Request, res: Response): Promise<void> {
    // With parameters in the body the URL alone is no key for the cache.
    const url = req.body ? undefined : PATH + req.url.slice(req.url.indexOf('?') + 1);
    const answer = await this.builds.latest(request, url);
    sendCacheable(req, res, answer, this.cacheControl);
  }

  private answers(req: Request, res: ServerResponse): boolean {
    if (!this.route || req.method !== 'GET' || hasBody(req)) return false;
    const found = this.builds.cached(req.url) ?? requestIn(req.url);
    if (!found) return false;
    req.route = this.route;
    try {
      // A cached answer is no guess.
      if (!('body' in found)) this.limits.guesses?.address.check(req, res);
      const spent = this.limits.spendAddress(req, res);
      if (spent instanceof Promise)
        spent.then(
          () => this.answer(req, res, found),
          (error: unknown) => answerError(this.log, res, error),
        );
      else this.answer(req, res, found);
    } catch (error) {
      answerError(this.log, res, error);
    }
    return true;
  }

  private answer(req: Request, res: ServerResponse, found: Cacheable | LatestRequest): void {
    if ('body' in found) this.send(req, res, found);
    else
      this.builds.latest(found, req.url).then(
        (answer) => this.send(req, res, answer),
        (error: unknown) => {
          answerError(this.log, res, error);
          if (res.statusCode === 404) this.limits.guesses?.address.failed(req);
        },
      );
  }

  private send(req: IncomingMessage, res: ServerResponse, answer: Cacheable): void {
    // The deadline may have answered already.
    if (!res.headersSent) sendCacheable(req, res, answer, this.cacheControl);
  }
}
