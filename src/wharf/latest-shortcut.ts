import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { Settings } from '../config/settings';
import { answerFor, sendFailure } from '../http/answer';
import { type Cacheable, sendCacheable } from '../http/cacheable';
import { clientNetwork } from '../http/client-address';
import { FrontDoor } from '../http/front-door';
import { hasBody } from '../http/parameter-sources';
import { RateLimitsService } from '../operations/rate-limits.service';
import { BuildsService } from './builds.service';

const PATH = '/wharf/latest?';

/**
 * Every installed copy of every game asks for its newest build, mostly for one that was just asked for, in the same words.
 * Such a question is answered at the front door: routing it would take longer than all the rest. What it may cost, and
 * what is told of it, is what the route's own way costs and tells.
 */
@Injectable()
export class LatestShortcut {
  readonly cacheControl: string;
  /** The route's own, by which log, metrics and traces know it. */
  route: Request['route'];

  constructor(
    private readonly builds: BuildsService,
    private readonly limits: RateLimitsService,
    settings: Settings,
    frontDoor: FrontDoor,
  ) {
    this.cacheControl = `public, max-age=${settings.LATEST_MAX_AGE}`;
    frontDoor.shortcut = (req, res) => this.answers(req as Request, res);
  }

  private answers(req: Request, res: ServerResponse): boolean {
    if (req.method !== 'GET' || !req.url.startsWith(PATH) || hasBody(req)) return false;
    const answer = this.builds.remembered(req.url);
    if (!answer) return false;
    req.route = this.route;
    try {
      const spent = this.limits.limits ? this.limits.spend(res, 'address', clientNetwork(req)) : undefined;
      if (spent instanceof Promise)
        spent.then(
          () => this.send(req, res, answer),
          (error: unknown) => refuse(res, error),
        );
      else this.send(req, res, answer);
    } catch (error) {
      refuse(res, error);
    }
    return true;
  }

  private send(req: IncomingMessage, res: ServerResponse, answer: Cacheable): void {
    // The deadline was faster.
    if (!res.headersSent) sendCacheable(req, res, answer, this.cacheControl);
  }
}

function refuse(res: ServerResponse, error: unknown): void {
  if (!res.headersSent) sendFailure(res, answerFor(error));
}
