import { createHmac, timingSafeEqual } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { deriveKey } from '../../auth/accounts/encryption';
import type { Clock } from '../../platform/config/clock';
import { OperatorError } from '../../platform/errors/operator-error';
import type { Settings } from '../../platform/config/settings';
import { FileStorage, requireLength } from './file-storage';

const TOKEN = /^([0-9a-z]{1,9})\.([\w-]{1,5000})\.([\w-]{43})$/;

type FolderSettings = Pick<Settings, 'FILES_DIR' | 'FILES_URL_SECONDS' | 'API_KEY_PEPPER'>;

export interface FoundFile {
  root: string;
  path: string;
  size: number;
  /** Strong, unlike Express's own, so that `If-Range` can resume a download. */
  etag: string;
}

/** Codes of a full disk and of a folder without permission to write. */
const NOT_WRITABLE = new Set<string | undefined>(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM']);

/** A local folder, whose files the service serves itself under `/files/TOKEN/FILENAME`. */
export class FolderStorage extends FileStorage {
  readonly folder: string;
  private readonly secret: Buffer;

  constructor(
    private readonly settings: FolderSettings,
    private readonly clock: Clock,
    private readonly service: { readonly url: string },
  ) {
    super();
    this.folder = resolve(settings.FILES_DIR!);
    this.secret = deriveKey(settings.API_KEY_PEPPER ?? '', 'gamewharf file URLs');
  }

  override downloadUrl(key: string, filename: string): string {
    const expires = Math.floor(this.clock.now() / 1000) + this.settings.FILES_URL_SECONDS;
    const head = `${expires.toString(36)}.${Buffer.from(key).toString('base64url')}`;
    const signature = this.sign(head, filename).toString('base64url');
    return `${this.service.url}/files/${head}.${signature}/${encodeURIComponent(filename)}`;
  }

  /** The key in an unexpired token for this file name. */
  keyIn(token: string, filename: string): string | undefined {
    const [, expires, key, signature] = TOKEN.exec(token) ?? [];
    if (signature === undefined) return undefined;
    const expected = this.sign(`${expires}.${key}`, filename);
    if (!timingSafeEqual(expected, Buffer.from(signature, 'base64url'))) return undefined;
    if (parseInt(expires!, 36) * 1000 <= this.clock.now()) return undefined;
    return Buffer.from(key!, 'base64url').toString();
  }

  /** The folder and the path of a file in it, both without symbolic links; undefined if the folder has no such file. */
  async find(key: string): Promise<FoundFile | undefined> {
    try {
      const root = await realpath(this.folder);
      const path = relative(root, await realpath(join(root, key)));
      if (path === '' || path === '..' || path.startsWith(`..${sep}`)) return undefined;
      const { size, mtimeMs } = await stat(join(root, path));
      return { root, path, size, etag: `"${size.toString(16)}-${Math.round(mtimeMs).toString(16)}"` };
    } catch {
      return undefined;
    }
  }

  override async put(key: string, _size: number, content: Readable, signal: AbortSignal): Promise<void> {
    const path = this.resolvePath(key);
    const temporary = temporaryFor(path);
    await mkdir(dirname(path), { recursive: true }).catch((error: unknown) => {
      throw this.problem(error);
    });
    const target = createWriteStream(temporary);
    try {
      await pipeline(content, target, { signal });
      const file = await open(temporary, 'r+');
      await file.sync().finally(() => file.close());
      await rename(temporary, path);
    } catch (error) {
      // A stream that is destroyed while it opens its file creates the file afterward.
      await new Promise<void>((closed) => (target.closed ? closed() : target.once('close', closed)));
      await rm(temporary, { force: true });
      throw this.problem(error);
    }
  }

  override async *read(key: string, start: number, end: number): AsyncGenerator<Buffer> {
    if (start === end) return;
    const file = await this.find(key);
    if (!file) throw new Error(`The folder has no file ${key}.`);
    const options = { start, end: end - 1 };
    yield* requireLength(createReadStream(join(file.root, file.path), options), end - start);
  }

  override async delete(key: string): Promise<void> {
    const path = this.resolvePath(key);
    await rm(path, { force: true });
    await rm(temporaryFor(path), { force: true });
  }

  private problem(error: unknown): unknown {
    const { code, message } = error as NodeJS.ErrnoException;
    return NOT_WRITABLE.has(code)
      ? new OperatorError(`The files in ${this.folder} can't be written: ${message}.`, { cause: error })
      : error;
  }

  private resolvePath(key: string): string {
    const path = resolve(this.folder, key);
    if (!path.startsWith(this.folder + sep)) throw new Error('the key leads out of the folder');
    return path;
  }

  private sign(head: string, filename: string): Buffer {
    return createHmac('sha256', this.secret).update(`${head}\n${filename}`).digest();
  }
}

/** Each key is stored once, so no two processes write the same file. */
const temporaryFor = (path: string) => `${path}.part`;
