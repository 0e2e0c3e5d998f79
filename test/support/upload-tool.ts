import { equal } from 'node:assert/strict';
import { until } from './time';

const PART_BYTES = 16 * 1024 * 1024;
const BLOCK_BYTES = 256 * 1024;
/** Attempts to send a part, or to request the state. The real tool waits 1, 2, 4 and so on seconds between them. */
const MAX_TRIES = 15;
/** The least that a zip archive ends with. */
const DIRECTORY_BYTES = 22;

interface ToolResponse {
  status: number;
  headers: Headers;
  bytes: Buffer;
}

interface CreatedBuild {
  id: number;
  upload_id: number;
  parent_build?: { id: number };
}

interface PushedFile {
  id: number;
  size: number;
  type: 'archive' | 'patch' | 'signature';
  state: string;
}

/** A buffer, or a file that is read piece by piece. */
export interface Content {
  length: number;
  subarray(start: number, end: number): Buffer;
}

/** A file that starts at an offset, as after a part that failed. */
interface Sending {
  location: string;
  content: Content;
}

/** Sends the requests of the marketplace's own upload tool, in its order and with its headers. */
export class UploadTool {
  /** Requests so far, as method, path with `N` for IDs, and status. */
  readonly requests: string[] = [];
  /** Size of a part. */
  partBytes = PART_BYTES;

  constructor(
    private readonly url: string,
    private readonly key: string,
  ) {}

  /** One push with the files that it would send. Returns the build without waiting for its processing. */
  async push(
    target: string,
    channel: string,
    files: { patch: Content; signature: Content },
    more: Record<string, string> = {},
  ): Promise<CreatedBuild> {
    const { build } = await this.post<{ build: CreatedBuild }>('/wharf/builds', { channel, target, ...more });
    if (build.parent_build) await this.parentSignature(build.parent_build.id);
    const [signature, patch] = await Promise.all([
      this.startFile(build.id, 'signature', files.signature),
      this.startFile(build.id, 'patch', files.patch),
    ]);
    await Promise.all([this.send(signature), this.send(patch)]);
    await Promise.all(
      [signature, patch].map(({ id, content }) =>
        this.post(`/wharf/builds/${build.id}/files/${id}`, { size: String(content.length) }),
      ),
    );
    return build;
  }

  /** Waits until a build is processed. */
  async processed(build_id: number): Promise<{ state: string; error: string | null }> {
    let build = { state: '', error: null as string | null };
    await until(async () => {
      ({ build } = await this.get<{ build: typeof build }>(`/wharf/builds/${build_id}`));
      return build.state === 'completed' || build.state === 'failed';
    });
    return build;
  }

  files = async (build_id: number) =>
    (await this.get<{ files: PushedFile[] }>(`/wharf/builds/${build_id}/files`)).files;

  async parentSignature(build_id: number): Promise<Buffer> {
    const file = (await this.files(build_id)).find(({ type }) => type === 'signature')!;
    return this.download(build_id, file.id);
  }

  /** The archive of a channel's newest build: its start, of which it reads little, its end, which lists its files, and its files. */
  async fetch(target: string, channel: string): Promise<Buffer> {
    const query = new URLSearchParams({ target }).toString();
    const { channel: found } = await this.get<{ channel: { head: { id: number } } }>(
      `/wharf/channels/${channel}?${query}`,
    );
    const { id } = found.head;
    const archive = (await this.files(id)).find(({ type }) => type === 'archive')!;
    const opened = await this.open(id, archive.id, 0);
    const reader = opened.body!.getReader();
    const { value: first } = await reader.read();
    const end = await this.download(id, archive.id, archive.size - DIRECTORY_BYTES);
    const whole = await this.download(id, archive.id);
    await reader.cancel();
    equal(whole.subarray(0, first!.length).equals(first!), true);
    equal(whole.subarray(-DIRECTORY_BYTES).equals(end), true);
    return whole;
  }

  async download(build_id: number, file_id: number, offset = 0): Promise<Buffer> {
    const response = await this.open(build_id, file_id, offset);
    return Buffer.from(await response.arrayBuffer());
  }

  /** A response whose body isn't read yet. Sends no header: the key is in the query. */
  private async open(build_id: number, file_id: number, offset: number): Promise<Response> {
    const path = `/wharf/builds/${build_id}/files/${file_id}/download?api_key=${this.key}`;
    const headers = { range: `bytes=${offset}-`, 'user-agent': 'Go-http-client/1.1' };
    const redirect = await this.request('GET', path, headers);
    equal(redirect.status, 302);
    const response = await this.respond('GET', redirect.headers.get('location')!, headers);
    equal(response.status, 206);
    return response;
  }

  async startFile(build_id: number, type: string, content: Content): Promise<Sending & { id: number }> {
    const { file } = await this.post<{ file: { id: number; upload_url: string; upload_headers: object } }>(
      `/wharf/builds/${build_id}/files`,
      { sub_type: 'default', type, upload_type: 'deferred_resumable' },
    );
    const started = await this.request('POST', file.upload_url, { ...file.upload_headers });
    equal(started.status, 201);
    return { id: file.id, location: started.headers.get('location')!, content };
  }

  async send({ location, content }: Sending): Promise<void> {
    for (let start = 0; start < content.length; start += this.partBytes)
      await this.sendPart({ location, content }, start, Math.min(start + this.partBytes, content.length));
  }

  /**
   * All parts but the last have no total. After a response with an error, it requests the state and continues there; if
   * there is no response, it sends the same bytes again, whether or not the service has them.
   */
  private async sendPart({ location, content }: Sending, first: number, end: number): Promise<void> {
    const isLast = end === content.length;
    let start = first;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const range = `bytes ${start}-${end - 1}/${isLast ? end : '*'}`;
      const sent = await this.put(location, range, content.subarray(start, end)).catch(() => undefined);
      if (!sent) continue;
      if (sent.status === 200 && isLast) return;
      const hasError = sent.status === 408 || sent.status >= 500;
      if (!hasError) equal(sent.status, 308);
      start = nextByte(hasError ? await this.state(location) : sent.headers);
      if (start === end) return;
      equal(start % BLOCK_BYTES, 0);
    }
    throw new Error('The part was not accepted.');
  }

  private async state(location: string): Promise<Headers> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const state = await this.put(location, 'bytes */*').catch(() => undefined);
      if (state?.status === 308) return state.headers;
    }
    throw new Error('The state of the upload is unknown.');
  }

  put(location: string, range: string, body?: Buffer): Promise<ToolResponse> {
    const headers = { 'content-range': range, 'user-agent': 'Go-http-client/1.1', 'accept-encoding': 'gzip' };
    return this.request('PUT', location, headers, body);
  }

  async get<T>(path: string): Promise<T> {
    return this.json<T>('GET', path);
  }

  async post<T = object>(path: string, form: Record<string, string>): Promise<T> {
    return this.json<T>('POST', path, new URLSearchParams(form).toString());
  }

  private async json<T>(method: string, path: string, body?: string): Promise<T> {
    const { status, bytes } = await this.request(
      method,
      path,
      {
        'user-agent': 'butler/head',
        accept: 'application/vnd.itch.v2',
        'accept-language': '*',
        'accept-encoding': 'gzip',
        authorization: this.key,
        ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      body,
    );
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${bytes.toString()}`);
    return JSON.parse(bytes.toString()) as T;
  }

  private async request(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: Buffer | string,
  ): Promise<ToolResponse> {
    const response = await this.respond(method, path, headers, body);
    const bytes = Buffer.from(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, bytes };
  }

  private async respond(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: Buffer | string,
  ): Promise<Response> {
    const url = new URL(path, this.url);
    const sent = typeof body === 'string' || body === undefined ? body : new Uint8Array(body);
    const response = await fetch(url, { method, headers, body: sent, redirect: 'manual' });
    const generic = url.pathname
      .replace(/\d+/g, 'N')
      .replace(/^\/upload-sessions\/.*/, '/session')
      .replace(/^\/files\/.*/, '/files');
    this.requests.push(`${method} ${generic} ${response.status}`);
    return response;
  }
}

const nextByte = (headers: Headers) =>
  Number(/^bytes=0-(\d+)$/.exec(headers.get('range') ?? 'bytes=0--1')?.[1] ?? -1) + 1;
