import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { ApiError, apiError, serviceUnavailable } from '../platform/errors/api-error';
import { ConcurrencyLimit, MAX_WAIT_MS } from '../platform/limits/concurrency-limit';
import { isOver, WebResponse } from '../platform/output/response';
import { Descriptors } from '../platform/server/descriptors';
import { attachment } from './storage/attachment';
import type { FoundFile } from './storage/folder-storage';

/** The files that one IP address can download at the same time. A download tool opens up to 16 connections. */
export const FILES_EACH = 32;
// A response has one chunk in memory, and about as much in the socket.
const RESPONSE_CHUNK_BYTES = 16 * 1024;
const DOWNLOAD_RETRY_SECONDS = 5;

type FindFile = () => Promise<FoundFile | undefined>;

/** An error as `send`, the library of Express, reports it. */
type SendError = Error & { status?: number; code?: string; headers?: Record<string, string> };

/** Sends files of the local folder. */
@Injectable()
export class FileResponses {
  readonly limit: ConcurrencyLimit;
  /** The newest file of a connection; resolves when its response is closed. */
  private readonly newest = new WeakMap<object, Promise<void>>();

  constructor({ maxConnections }: Descriptors) {
    // Each response uses a file descriptor in addition to that of its connection.
    const running = Math.ceil(maxConnections / 4);
    this.limit = new ConcurrencyLimit({
      accepted: 2 * running,
      running,
      each: Math.min(FILES_EACH, running),
    });
  }

  /**
   * A response that sends a file to save, or a range of it. A waiting response hasn't looked for the file
   * yet.
   */
  response(find: FindFile, filename: string): WebResponse {
    return new FileResponse((res) => this.send(res, find, filename));
  }

  /** Sends the file when the limit allows it. Rejects with 503 after MAX_WAIT_MS. */
  private async send(res: Response, find: FindFile, filename: string): Promise<void> {
    const { inFlight } = res.req;
    // A long download doesn't count as work. The minimum transfer rate applies.
    inFlight.leave();
    if (isOver(res)) return;
    const closed = new Promise<void>((resolve) => res.once('close', resolve));
    const previous = this.newest.get(inFlight.connection);
    this.newest.set(inFlight.connection, closed);
    // Without this wait, pipelined files would stay open for as long as the client doesn't read the first.
    await previous;
    const signal = AbortSignal.timeout(MAX_WAIT_MS);
    const sent = () => Promise.race([closed, sendFile(res, find, filename)]);
    await this.limit.run(inFlight.client, signal, sent, DOWNLOAD_RETRY_SECONDS);
  }
}

class FileResponse extends WebResponse {
  constructor(override readonly sendTo: WebResponse['sendTo']) {
    super();
  }
}

/** Rejects if the file can't be sent. The response is closed when it has been sent. */
async function sendFile(res: Response, find: FindFile, filename: string): Promise<void> {
  const file = isOver(res) ? undefined : await find();
  if (isOver(res)) return;
  if (!file) throw invalidFile();
  const { root, path, size, etag } = file;
  const { headers } = res.req;
  if (isLongerSuffix(headers.range, size)) headers.range = 'bytes=0-';
  // The type of the file isn't sent: as a script, it would run in the origin of the account pages.
  res.type('application/octet-stream').setHeader('Content-Disposition', attachment(filename));
  res.setHeader('ETag', etag);
  const options = {
    root,
    dotfiles: 'allow',
    cacheControl: false,
    highWaterMark: RESPONSE_CHUNK_BYTES,
  } as const;
  await new Promise<never>((_, reject) => {
    res.sendFile(path, options, (error?: SendError) => {
      if (error && !res.headersSent) reject(toApiError(error));
    });
  });
}

/** The library rejects a suffix that is longer than the file, which means the whole file (RFC 9110, 14.1.2). */
const isLongerSuffix = (range: string | undefined, size: number): boolean =>
  Number(/^bytes=-(\d+)$/.exec(range ?? '')?.[1] ?? 0) > size;

function toApiError({ status, code, headers }: SendError): ApiError {
  if (status === 416) return new ApiError(416, ['range not satisfiable'], headers);
  if (status === 412) return apiError(412, 'precondition failed');
  return status === 404 || code === 'EISDIR' ? invalidFile() : serviceUnavailable();
}

const invalidFile = () => apiError(404, 'invalid file');
