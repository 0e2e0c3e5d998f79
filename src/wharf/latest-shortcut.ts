import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Settings } from '../config/settings';
import { answerError } from '../http/answer';
import { type Cacheable, sendCacheable } from '../http/cacheable';
import { FrontDoor } from '../http/front-door';
import { hasBody } from '../http/parameter-sources';
import type { RequestLog } from '../http/request-log';
import { RateLimitsService } from '../operations/rate-limits.service';
import { BuildsService } from './builds.service';
import type { LatestRequest } from './latest.dto';

const PATH = '/wharf/latest?';
// Addresses that mean what they say, without anything to decode. All others are read by the route.
const PLAIN =
  /^\/wharf\/latest\?(?:game_id=([1-9]\d{0,14})|target=([\w.-]+\/[\w.-]+))&channel_name=([\w.-]+)$/;

function plainQuestion(address: string): LatestRequest | undefined {
  const [, game_id, target, channel_name] = PLAIN.exec(address) ?? [];
  if (channel_name === undefined) return undefined;
  return { game_id: game_id === undefined ? undefined : Number(game_id), target, channel_name };
}

/**
 * Every installed copy of every game asks for its newest build, mostly for one that was just asked for, in the same words.
 * Such a question is answered at the front door: routing it would take longer than all the rest. What it may cost, and
 * what is told of it, is what the route's own way costs and tells.
 */
@Injectable()
export class LatestShortcut {
  private readonly cacheControl: string;
  private readonly log: RequestLog;
  /** The route's own, by which log, metrics and traces know it. */
  route: Request['route'];

  constructor(
    private readonly builds: BuildsService,
    private readonly limits: RateLimitsService,
    settings: Settings,
    frontDoor: FrontDoor,
  ) {
    this.cacheControl = `public, max-age=${settings.LATEST_MAX_AGE}`;
    this.log = frontDoor.log;
    frontDoor.shortcut = (req, res) => this.answers(req as Request, res);
  }

  /** Answers what the router and the parameters' readers took. */
  async serve(request: LatestRequest, req: Request, res: Response): Promise<void> {
    // Where parameters stand in the body as well, the address is not all of the question.
    const address = req.givenInBody ? undefined : PATH + req.url.slice(req.url.indexOf('?') + 1);
    const answer = await this.builds.latest(request, address);
    sendCacheable(req, res, answer, this.cacheControl);
  }

  private answers(req: Request, res: ServerResponse): boolean {
    if (!this.route || req.method !== 'GET' || !req.url.startsWith(PATH) || hasBody(req)) return false;
    const known = this.builds.remembered(req.url) ?? plainQuestion(req.url);
    if (!known) return false;
    req.route = this.route;
    try {
      // Only what asks the database can be a guess.
      if (!('body' in known)) this.limits.guesses?.address.ask(req, res);
      const spent = this.limits.spendAddress(req, res);
      if (spent instanceof Promise)
        spent.then(
          () => this.answer(req, res, known),
          (error: unknown) => answerError(this.log, res, error),
        );
      else this.answer(req, res, known);
    } catch (error) {
      answerError(this.log, res, error);
    }
    return true;
  }

  private answer(req: Request, res: ServerResponse, known: Cacheable | LatestRequest): void {
    if ('body' in known) this.send(req, res, known);
    else
      this.builds.latest(known, req.url).then(
        (answer) => this.send(req, res, answer),
        (error: unknown) => {
          answerError(this.log, res, error);
          if (res.statusCode === 404) this.limits.guesses?.address.failed(req);
        },
      );
  }

  private send(req: IncomingMessage, res: ServerResponse, answer: Cacheable): void {
    // The deadline was faster.
    if (!res.headersSent) sendCacheable(req, res, answer, this.cacheControl);
  }
}
