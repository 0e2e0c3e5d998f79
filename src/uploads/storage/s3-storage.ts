import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sign } from 'aws4';
import type { Clock } from '../../platform/config/clock';
import { OperatorError } from '../../platform/errors/operator-error';
import type { Settings } from '../../platform/config/settings';
import { attachment } from './attachment';
import { FileStorage, requireLength } from './file-storage';

/** The maximum size of an S3 object that is stored in one request. */
const MAX_PUT_BYTES = 5 * 2 ** 30;
/** An upload without progress fails after this time. */
const SOCKET_IDLE_TIMEOUT_MS = 60_000;

type S3Settings = Pick<
  Settings,
  | 'FILES_S3_ENDPOINT'
  | 'FILES_S3_BUCKET'
  | 'FILES_S3_REGION'
  | 'FILES_S3_ACCESS_KEY_ID'
  | 'FILES_S3_SECRET_ACCESS_KEY'
  | 'FILES_URL_SECONDS'
>;

// The AWS SDK isn't used, because its presigner adds many packages and needs a promise for each URL.
/** A bucket of any S3-compatible storage, with path-style URLs and Signature Version 4. */
export class S3Storage extends FileStorage {
  private readonly endpoint: URL;
  // The parts of the endpoint are stored because the getters of URL compute them on each call.
  private readonly origin: string;
  private readonly host: string;
  private readonly folder: string;
  private readonly credentials: { accessKeyId: string; secretAccessKey: string };
  /** The URLs of one second, because clients request a file on several connections. */
  private signed = { date: '', urls: new Map<string, string>() };

  constructor(
    private readonly settings: S3Settings,
    private readonly clock: Clock,
  ) {
    super();
    this.endpoint = new URL(settings.FILES_S3_ENDPOINT!);
    ({ origin: this.origin, host: this.host } = this.endpoint);
    this.folder = `${this.endpoint.pathname.replace(/\/$/, '')}/${encoded(settings.FILES_S3_BUCKET!)}`;
    this.credentials = {
      accessKeyId: settings.FILES_S3_ACCESS_KEY_ID!,
      secretAccessKey: settings.FILES_S3_SECRET_ACCESS_KEY!,
    };
  }

  override downloadUrl(key: string, filename: string): string {
    const { date } = this;
    if (this.signed.date !== date) this.signed = { date, urls: new Map() };
    const { urls } = this.signed;
    const file = `${key}\n${filename}`;
    let url = urls.get(file);
    if (url === undefined) urls.set(file, (url = this.sign(key, filename, date)));
    return url;
  }

  private sign(key: string, filename: string, date: string): string {
    const to = this.to(key);
    const query =
      `X-Amz-Date=${date}&X-Amz-Expires=${this.settings.FILES_URL_SECONDS}` +
      `&response-content-disposition=${encoded(attachment(filename))}`;
    const { path } = sign({ ...to, path: `${to.path}?${query}`, signQuery: true }, this.credentials);
    return this.origin + path!;
  }

  override async put(key: string, size: number, content: Readable, signal: AbortSignal): Promise<void> {
    if (size > MAX_PUT_BYTES)
      throw new OperatorError(
        "S3 accepts at most 5 GiB in one request. Copy the file with your storage's own tool, and import a record with its key.",
      );
    await this.send('PUT', key, content, signal, { 'Content-Length': String(size) });
  }

  override async *read(key: string, start: number, end: number): AsyncGenerator<Buffer> {
    if (start === end) return;
    const outgoing = this.open('GET', key, { Range: `bytes=${start}-${end - 1}` });
    outgoing.end();
    try {
      const incoming = await responseTo(outgoing);
      if (incoming.statusCode !== 206) throw statusError(incoming, await readText(incoming));
      yield* requireLength(incoming as AsyncIterable<Buffer>, end - start);
    } catch (error) {
      throw this.problem(error);
    } finally {
      outgoing.destroy();
    }
  }

  override async delete(key: string): Promise<void> {
    await this.send('DELETE', key, Readable.from([]), undefined, {});
  }

  private to(key: string) {
    return {
      service: 's3',
      region: this.settings.FILES_S3_REGION,
      host: this.host,
      path: `${this.folder}/${key.split('/').map(encoded).join('/')}`,
      headers: { Host: this.host },
    };
  }

  /** The current time in the basic format of ISO 8601. */
  private get date(): string {
    return new Date(this.clock.now()).toISOString().replace(/[-:]|\.\d{3}/g, '');
  }

  private open(
    method: 'GET' | 'PUT' | 'DELETE',
    key: string,
    more: Record<string, string>,
    signal?: AbortSignal,
  ): ClientRequest {
    const to = this.to(key);
    // The content is not hashed before it is sent, because it is read only once.
    const headers = {
      ...to.headers,
      ...more,
      'X-Amz-Date': this.date,
      'X-Amz-Content-Sha256': 'UNSIGNED-PAYLOAD',
    };
    const signed = sign({ ...to, method, headers }, this.credentials);
    const request = this.endpoint.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = request(this.endpoint.origin, {
      path: to.path,
      method,
      headers: signed.headers as Record<string, string>,
      timeout: SOCKET_IDLE_TIMEOUT_MS,
      signal,
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('it sent nothing for a minute')));
    return outgoing;
  }

  private async send(
    method: 'PUT' | 'DELETE',
    key: string,
    content: Readable,
    signal: AbortSignal | undefined,
    more: Record<string, string>,
  ): Promise<void> {
    const outgoing = this.open(method, key, more, signal);
    const response = responseTo(outgoing);
    try {
      // A server may respond before it has read the whole body, and close the connection.
      const sent = pipeline(content, outgoing);
      sent.catch(() => undefined);
      const incoming = await response;
      const body = await readText(incoming);
      if (incoming.statusCode! >= 300) throw statusError(incoming, body);
      await sent;
    } catch (error) {
      // Otherwise the rest of the body would still be sent.
      outgoing.destroy();
      throw signal?.aborted ? error : this.problem(error);
    }
  }

  private problem(error: unknown): unknown {
    if (error instanceof OperatorError) return error;
    return new OperatorError(`The storage at ${this.endpoint.origin} failed: ${(error as Error).message}.`);
  }
}

const responseTo = (outgoing: ClientRequest) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.on('response', resolve);
  });

/** The start of a body, which may be cut. */
const readText = (incoming: IncomingMessage) =>
  new Promise<string>((resolve) => {
    let body = '';
    incoming
      .setEncoding('utf8')
      .on('data', (piece: string) => (body += piece).length > 10_000 && incoming.destroy());
    incoming.on('error', () => undefined);
    incoming.on('close', () => resolve(body));
  });

function statusError({ statusCode }: IncomingMessage, body: string): OperatorError {
  const [, code = 'no code'] = /<Code>([\w.]+)<\/Code>/.exec(body) ?? [];
  return new OperatorError(`The storage responded with status ${statusCode} (${code}).`);
}

/** Encodes according to RFC 3986, because encodeURIComponent doesn't encode !'()*. */
const encoded = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
