import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { type Credential, readCredential } from '../../auth/access/credential';
import { takeKeyFromQuery } from '../../auth/access/key-in-query';
import { Clock } from '../../platform/config/clock';
import type { ApiError } from '../../platform/errors/api-error';
import { hasReadableBody, parseBody } from '../../platform/input/body';
import { sendApiError, sendJson } from '../../platform/output/response';
import { ApiPaths, isMockPath } from './api-paths';
import { type Fault, Faults, responseToFault } from './faults.service';
import { emptyListsAsObjects, LiveQuirks } from './quirks.service';
import { RecordedRequests, safeUrl, withoutSecrets } from './recorded-requests.service';
import { ResetLock } from './reset-lock';

/** Runs before everything else that handles a request: records it, applies faults and quirks, and waits for resets. */
@Injectable()
export class MockTraffic {
  constructor(
    private readonly paths: ApiPaths,
    private readonly faults: Faults,
    private readonly recorded: RecordedRequests,
    private readonly quirks: LiveQuirks,
    private readonly lock: ResetLock,
    private readonly clock: Clock,
  ) {}

  readonly handle = (req: Request, res: Response, next: NextFunction): void => {
    if (isMockPath(req.path)) return next();
    this.serve(req, res, next).catch((error: unknown) => next(error));
  };

  private async serve(req: Request, res: Response, next: NextFunction): Promise<void> {
    const began = { at: this.clock.now(), since: this.clock.monotonic() };
    const { method, url } = req;
    const template = this.paths.find(req.path);
    const query = withoutSecrets({ ...req.query });
    // A fault can delay a request for as long as the test wants.
    req.inFlight.removeDeadline();
    try {
      await this.lock.enter();
    } catch (error) {
      sendApiError(res, error as ApiError);
      return;
    }
    // Its client has gone: no event would end it.
    if (req.socket.destroyed) {
      this.lock.leave();
      return;
    }
    const fault = this.faults.take(method, template);
    let isDone = false;
    const done = () => {
      if (isDone) return;
      isDone = true;
      req.socket.off('close', done);
      this.lock.leave();
      this.recorded.add({
        at: new Date(began.at).toISOString(),
        method,
        path: template,
        url: safeUrl(url),
        query,
        body: withoutSecrets(req.body as unknown) ?? null,
        ...credentialUsed(req),
        status: fault?.then.close ? null : res.statusCode,
        ms: Math.round(this.clock.monotonic() - began.since),
        fault_id: fault?.id ?? null,
      });
    };
    res.once('finish', done).once('close', done);
    req.socket.once('close', done);
    this.changeLists(res, template);
    if (fault) await this.apply(fault, req, res, next);
    else next();
  }

  private async apply({ then }: Fault, req: Request, res: Response, next: NextFunction): Promise<void> {
    const response = responseToFault(then);
    if (response || then.close) await readForRecord(req, res);
    const until = this.clock.monotonic() + (then.delay_ms ?? 0);
    // A reset doesn't wait for a delay: the client may have stopped waiting, which the service can't detect.
    while (this.clock.monotonic() < until && !this.lock.isResetting) await sleep(DELAY_CHECK_MS);
    if (then.close) {
      req.socket.destroy();
      return;
    }
    for (const [name, value] of Object.entries(then.headers ?? {})) keepHeader(res, name, value);
    if (then.truncate !== undefined) truncate(res, then.truncate);
    if (!response) next();
    else if (response.body) sendJson(res, response.status, JSON.stringify(response.body));
    else res.status(response.status).end();
  }

  /** Wraps `end` and `write`, so that it applies to every kind of response. */
  private changeLists(res: Response, template: string | null): void {
    if (template === null) return;
    const change = (chunk: unknown): unknown => {
      if (this.quirks.get().empty_lists !== 'object' || !isJson(res)) return chunk;
      if (typeof chunk === 'string') return emptyListsAsObjects(chunk);
      return Buffer.isBuffer(chunk) ? Buffer.from(emptyListsAsObjects(chunk.toString())) : chunk;
    };
    for (const name of WRITERS) wrap(res, name, change);
  }
}

const DELAY_CHECK_MS = 10;

const isJson = (res: Response) => String(res.getHeader('content-type')).startsWith('application/json');

/** Reads the credential and the body of a request that the service doesn't handle. */
async function readForRecord(req: Request, res: Response): Promise<void> {
  takeKeyFromQuery(req);
  readCredential(req, res, () => undefined);
  // A body with mistakes isn't recorded.
  if (hasReadableBody(req)) await parseBody(req).catch(() => undefined);
}

type Writer = (chunk: unknown, ...rest: unknown[]) => unknown;

const WRITERS = ['write', 'end', 'sendAtEndOfTick'] as const;

function wrap(res: Response, name: (typeof WRITERS)[number], change: (chunk: unknown) => unknown): void {
  const original = res[name].bind(res) as Writer;
  (res as unknown as Record<string, Writer>)[name] = (chunk, ...rest) => original(change(chunk), ...rest);
}

/** A header of a fault takes precedence over that of the service. */
function keepHeader(res: Response, name: string, value: string): void {
  const setHeader = res.setHeader.bind(res);
  setHeader(name, value);
  res.setHeader = ((other: string, otherValue: string) =>
    other.toLowerCase() === name.toLowerCase() ? res : setHeader(other, otherValue)) as Response['setHeader'];
}

/** Closes the connection after this number of bytes of the body. A shorter response is sent completely. */
function truncate(res: Response, bytes: number): void {
  let left = bytes;
  const { method, socket } = res.req;
  const cutOff = () => socket.destroy();
  const [write, end] = [res.write.bind(res) as Writer, res.end.bind(res) as Writer];
  /** Sends all of it with `writer`, or its start. */
  const send = (chunk: unknown, writer: Writer) => {
    const content =
      typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.isBuffer(chunk) ? chunk : Buffer.alloc(0);
    const sent = method === 'HEAD' ? Buffer.alloc(0) : content.subarray(0, left);
    left -= sent.length;
    if (left > 0) return writer(chunk);
    if (sent.length > 0) return write(sent, cutOff);
    res.flushHeaders();
    setImmediate(cutOff);
    return true;
  };
  const endCut: Writer = (chunk) => {
    send(chunk, end);
    return res;
  };
  Object.assign(res, { write: (chunk: unknown) => send(chunk, write), end: endCut, sendAtEndOfTick: endCut });
}

function credentialUsed(req: Request): {
  credential: 'none' | 'key' | 'jwt' | 'session';
  user_id: number | null;
} {
  const verified = req.user as Credential | undefined;
  if (verified) return { credential: verified.type, user_id: verified.user_id };
  const visitor = req.visitor as { user?: { id: number } } | undefined;
  if (visitor?.user) return { credential: 'session', user_id: visitor.user.id };
  const unverified = req.unverifiedCredential;
  const type = unverified && 'type' in unverified ? unverified.type : 'none';
  return { credential: type, user_id: null };
}
