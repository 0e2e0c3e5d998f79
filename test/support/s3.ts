import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Clock } from '../../src/platform/config/clock';

const CREDENTIALS = { accessKeyId: 'AKIATEST', secretAccessKey: 'a secret + of/tests' };
const BUCKET = 'games';

/** One request that waits. */
export interface HeldRequest {
  /** Resolves when the request waits. */
  reached: Promise<void>;
  release(): void;
}

interface Hold {
  method: string;
  key: RegExp;
  isDone: boolean;
  wait(): Promise<void>;
}

/**
 * An in-memory bucket. Signatures are checked with AWS's own implementation, which the service doesn't use: each
 * request is signed again as received, for the region of the bucket, and compared.
 */
export class S3Double {
  readonly objects = new Map<string, Buffer>();
  /** The next PUT is cut after this number of bytes. */
  cutAfter = Infinity;
  private readonly holds = new Set<Hold>();
  readonly settings: Record<string, string>;
  private readonly server: Server;

  private constructor(
    server: Server,
    region: string,
    private readonly clock: Pick<Clock, 'now'>,
  ) {
    this.server = server;
    this.signer = new SignatureV4({
      service: 's3',
      region,
      credentials: CREDENTIALS,
      sha256: Sha256,
      uriEscapePath: false,
      applyChecksum: false,
    });
    this.settings = {
      FILES_S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      FILES_S3_BUCKET: BUCKET,
      FILES_S3_REGION: region,
      FILES_S3_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      FILES_S3_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    };
  }

  private readonly signer: SignatureV4;

  static async open(clock: Pick<Clock, 'now'> = Date, region = 'eu-west-1'): Promise<S3Double> {
    // A request that its client cuts fails.
    const server = createServer((req, res) => void double.response(req, res).catch(() => res.destroy()));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const double = new S3Double(server, region, clock);
    return double;
  }

  /** The next such request of the service waits until it is released; with `isDone`, only its response. */
  hold(method: 'GET' | 'PUT' | 'DELETE', key: RegExp, { isDone = false } = {}): HeldRequest {
    let reach!: () => void;
    let release!: () => void;
    const reached = new Promise<void>((resolve) => (reach = resolve));
    const released = new Promise<void>((resolve) => (release = resolve));
    const wait = () => {
      reach();
      return released;
    };
    this.holds.add({ method, key, isDone, wait });
    return { reached, release };
  }

  private async waitIfHeld(method: string, key: string, isDone: boolean): Promise<void> {
    for (const hold of this.holds) {
      if (hold.method !== method || hold.isDone !== isDone || !hold.key.test(key)) continue;
      this.holds.delete(hold);
      return hold.wait();
    }
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async response(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url!, `http://${req.headers.host}`);
    // S3 rejects such a request, too: a client that follows a redirect must not send the credential of the
    // store.
    if (url.searchParams.has('X-Amz-Signature') && req.headers.authorization)
      return end(res, 400, 'InvalidArgument');
    const problem = url.searchParams.has('X-Amz-Signature')
      ? await this.problemOfQuery(req, url)
      : await this.problemOfHeaders(req, url);
    if (problem) return end(res, 403, problem);
    const key = decodeURIComponent(url.pathname).slice(`/${BUCKET}/`.length);
    const isOfService = req.headers.authorization !== undefined;
    if (isOfService) await this.waitIfHeld(req.method!, key, false);
    if (req.method === 'PUT') await this.put(req, res, key);
    else if (req.method === 'DELETE') {
      this.objects.delete(key);
      await this.waitIfHeld('DELETE', key, true);
      res.writeHead(204).end();
    } else this.get(req, res, key, url.searchParams.get('response-content-disposition'));
  }

  private async problemOfQuery(req: IncomingMessage, url: URL): Promise<string | undefined> {
    const query = Object.fromEntries(url.searchParams);
    const { 'X-Amz-Signature': given, 'X-Amz-Date': date, 'X-Amz-Expires': expires } = query;
    for (const name of Object.keys(query)) if (name.startsWith('X-Amz-')) delete query[name];
    const at = dateIn(date!);
    if (at.getTime() + Number(expires) * 1000 < this.clock.now()) return 'AccessDenied';
    const { query: signed } = await this.signer.presign(
      {
        ...requestAddress(req, url),
        method: 'GET',
        query,
        headers: { host: req.headers.host!, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
      },
      {
        signingDate: at,
        expiresIn: Number(expires),
        unhoistableHeaders: UNSIGNED,
        unsignableHeaders: UNSIGNED,
      },
    );
    return equal(given!, signed!['X-Amz-Signature'] as string) ? undefined : 'SignatureDoesNotMatch';
  }

  private async problemOfHeaders(req: IncomingMessage, url: URL): Promise<string | undefined> {
    const { authorization = '', 'x-amz-date': date = '' } = req.headers as Record<string, string>;
    const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';');
    if (!names) return 'AccessDenied';
    const headers = Object.fromEntries(names.map((name) => [name, String(req.headers[name])]));
    const signed = await this.signer.sign(
      { ...requestAddress(req, url), method: req.method!, query: {}, headers },
      { signingDate: dateIn(date), signableHeaders: new Set(names) },
    );
    const signature = (text: string) => /Signature=(\w+)/.exec(text)?.[1] ?? '';
    return equal(signature(authorization), signature(signed.headers.authorization!))
      ? undefined
      : 'SignatureDoesNotMatch';
  }

  private async put(req: IncomingMessage, res: ServerResponse, key: string): Promise<void> {
    const pieces: Buffer[] = [];
    let length = 0;
    for await (const piece of req as AsyncIterable<Buffer>) {
      pieces.push(piece);
      length += piece.length;
      if (length >= this.cutAfter) return void req.socket.destroy();
    }
    const body = Buffer.concat(pieces);
    this.objects.set(key, body);
    await this.waitIfHeld('PUT', key, true);
    res.setHeader('ETag', `"${createHash('md5').update(body).digest('hex')}"`);
    res.end();
  }

  private get(req: IncomingMessage, res: ServerResponse, key: string, disposition: string | null): void {
    const whole = this.objects.get(key);
    if (!whole) return end(res, 404, 'NoSuchKey');
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(req.headers.range ?? '') ?? [];
    const last = Math.min(to ? Number(to) : Infinity, whole.length - 1);
    const body = from === undefined ? whole : whole.subarray(Number(from), last + 1);
    res.statusCode = from === undefined ? 200 : 206;
    if (from !== undefined) res.setHeader('Content-Range', `bytes ${from}-${last}/${whole.length}`);
    if (disposition) res.setHeader('Content-Disposition', disposition);
    res.setHeader('Content-Length', body.length);
    res.end(req.method === 'HEAD' ? undefined : body);
  }
}

// S3 signs the path as sent.
const requestAddress = (req: IncomingMessage, url: URL) => ({
  protocol: 'http:',
  hostname: req.headers.host!,
  path: url.pathname,
});

const UNSIGNED = new Set(['x-amz-content-sha256']);

const dateIn = (text: string) =>
  new Date(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));

const equal = (a: string, b: string) =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

const end = (res: ServerResponse, status: number, code: string) =>
  void res
    .writeHead(status, { 'Content-Type': 'application/xml' })
    .end(`<Error><Code>${code}</Code></Error>`);
