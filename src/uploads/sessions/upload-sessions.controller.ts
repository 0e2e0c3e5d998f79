import { Controller, Post, Put, Req } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { Params } from '../../platform/input/params.decorator';
import { StreamedBody } from '../../platform/input/body.guard';
import { NonEmptyText } from '../../platform/input/parameters';
import { ConcurrencyLimit, MAX_WAIT_MS } from '../../platform/limits/concurrency-limit';
import { RequestCost } from '../../platform/limits/rate-limits.decorators';
import { WebResponse } from '../../platform/output/response';
import { Descriptors } from '../../platform/server/descriptors';
import { readContentRange } from './content-range';
import { PartBody } from './part-body';
import { isComplete, type Session, UploadSessions } from './upload-sessions.service';

/** Maximum number of parts that a process receives at the same time, in total and from one IP address. */
export const PARTS_EACH = 8;
export const MAX_PARTS = 256;
// Each part uses a file descriptor or a connection to the bucket, in addition to the client's connection.
const PARTS_SHARE = 1 / 16;
const PART_RETRY_SECONDS = 5;

class SessionRequest {
  @NonEmptyText('Signed text that identifies the session')
  token: string;
}

/** Receives parts of files, from anyone with a signed URL. */
@ApiExcludeController()
@Controller('upload-sessions')
export class UploadSessionsController {
  private readonly limit: ConcurrencyLimit;

  constructor(
    private readonly sessions: UploadSessions,
    { maxConnections }: Descriptors,
  ) {
    const running = Math.min(MAX_PARTS, Math.ceil(maxConnections * PARTS_SHARE));
    this.limit = new ConcurrencyLimit({
      accepted: 2 * running,
      running,
      each: Math.min(PARTS_EACH, running),
    });
  }

  /** Upload tools start a session at one URL and send parts to another URL. Here, both are the same. */
  @Post(':token')
  @Public()
  async start(@Params() { token }: SessionRequest): Promise<WebResponse> {
    const { id } = await this.sessions.require(this.sessions.idIn(token));
    return new SessionResponse(201, { Location: this.sessions.sessionUrl(id) });
  }

  @Put(':token')
  @Public()
  @RequestCost(0.1)
  @StreamedBody()
  async receive(@Params() { token }: SessionRequest, @Req() req: Request): Promise<WebResponse> {
    const { inFlight } = req;
    try {
      const id = this.sessions.idIn(token);
      const { part, size } = readContentRange(req.headers['content-range']);
      if (!part) return sessionState(await this.sessions.require(id));
      // The client decides how long it takes; the minimum transfer rate applies.
      inFlight.removeDeadline();
      inFlight.leave();
      const signal = AbortSignal.timeout(MAX_WAIT_MS);
      const session = await this.limit.run(
        inFlight.client,
        signal,
        () => this.receivePart(id, { part, size }, req),
        PART_RETRY_SECONDS,
      );
      return isComplete(session) ? new SessionResponse(200) : sessionState(session);
    } finally {
      // The response doesn't wait for the rest of the body.
      if (!req.complete) inFlight.connection.closeAfter(req.res!);
    }
  }

  private async receivePart(
    id: string,
    range: Parameters<UploadSessions['receive']>[1],
    req: Request,
  ): Promise<Session> {
    const body = new PartBody(req);
    const stop = body.enforceRate();
    try {
      return await this.sessions.receive(id, range, body);
    } finally {
      stop();
    }
  }
}

const sessionState = ({ received }: Session) =>
  new SessionResponse(308, received > 0 ? { Range: `bytes=0-${received - 1}` } : {});

class SessionResponse extends WebResponse {
  constructor(
    private readonly status: number,
    private readonly headers: Record<string, string> = {},
  ) {
    super();
  }

  override sendTo(res: Response): void {
    res.statusCode = this.status;
    for (const [name, value] of Object.entries(this.headers)) res.setHeader(name, value);
    res.setHeader('Content-Length', 0);
    res.sendAtEndOfTick('');
  }
}
