import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { deriveKey } from '../auth/accounts/encryption';
import { Settings } from '../platform/config/settings';
import { IdempotencyService, type RetryKey } from '../idempotency/idempotency.service';
import { type AccessRow, keyUsed } from './download-access';
import { DownloadCounts } from './download-counts.service';
import { FileStorage } from './storage/file-storage';
import type {
  DownloadBuildRequest,
  DownloadSessionResponse,
  DownloadUploadRequest,
  UploadsRequest,
} from './download.dto';
import { type BuildFileRow, DownloadableBuilds } from './downloadable-builds.service';
import { type Downloader, invalidBuildFile, UploadsService } from './uploads.service';

const ASCII = /^[!-~]*$/;

interface StoredFile {
  external_url?: string | null;
  file_key: string | null;
  file_url: string | null;
}

/** The last group of digits of a UUID. */
const SIGNATURE_LENGTH = 12;

@Injectable()
export class DownloadsService {
  private readonly secret: Buffer;

  constructor(
    settings: Settings,
    private readonly uploads: UploadsService,
    private readonly builds: DownloadableBuilds,
    private readonly storage: FileStorage,
    private readonly counts: DownloadCounts,
    private readonly idempotency: IdempotencyService,
  ) {
    this.secret = deriveKey(settings.API_KEY_PEPPER ?? '', 'gamewharf download sessions');
  }

  /** The URL of an upload's file, for a user who may download it. */
  async upload(request: DownloadUploadRequest, credential: Downloader, req: Request): Promise<string> {
    const upload = await this.uploads.file(request, credential);
    const url = this.locate(upload, upload.filename);
    this.count(upload, upload.game_id, request.uuid, req);
    return url;
  }

  /**
   * The URL of a file for anyone with the text of a download key. `visit`: all downloads of one visit with
   * the key count as one.
   */
  async withKey({ id, key }: { id: number; key: string }, upload_id: number, visit: string): Promise<string> {
    const upload = await this.uploads.fileOfKey(key, upload_id);
    const url = this.locate(upload, upload.filename);
    const { game_id } = upload;
    this.counts.add({
      game_id,
      download_key_id: id,
      uuid: this.signed(hashToUuid(`${visit} ${id}`), game_id),
    });
    return url;
  }

  /**
   * The URL of a build's file, for a user who may download it. The download of a signature isn't counted,
   * because a signature contains no part of the game.
   */
  async build(request: DownloadBuildRequest, credential: Downloader, req: Request): Promise<string> {
    const file = await this.builds.file(request, credential);
    if (request.sub_type !== 'default') throw invalidBuildFile();
    const url = this.locate(file, buildFileName(file, request));
    if (request.file_type !== 'signature') this.count(file, file.game_id, request.uuid, req);
    return url;
  }

  /** Nothing is stored until a download of the session is counted. */
  async session(
    request: UploadsRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<DownloadSessionResponse> {
    await this.uploads.requireGame(request, credential);
    return this.idempotency.once(key, request, () =>
      Promise.resolve({ uuid: this.signed(randomUUID(), request.game_id) }),
    );
  }

  /** Encodes a URL that isn't ASCII: a redirect of Express would percent-encode its host, and the legacy route nothing. */
  private locate({ external_url, file_url, file_key }: StoredFile, filename: string): string {
    const url = external_url ?? file_url;
    if (url === null) return this.storage.downloadUrl(file_key!, filename);
    return ASCII.test(url) ? url : new URL(url).href;
  }

  /**
   * Ignores sessions that weren't issued for the game, because otherwise each UUID that a client invents
   * would add a row.
   */
  private count(access: AccessRow, game_id: number, requestedUuid: string | undefined, req: Request): void {
    const uuid = requestedUuid?.toLowerCase();
    const inSession =
      uuid !== undefined && timingSafeEqual(Buffer.from(uuid), Buffer.from(this.signed(uuid, game_id)));
    if (!inSession && !startsDownload(req)) return;
    this.counts.add({ game_id, download_key_id: keyUsed(access), uuid: inSession ? uuid : undefined });
  }

  /** The UUID with a signature as its last digits. */
  private signed(uuid: string, game_id: number): string {
    const start = uuid.slice(0, -SIGNATURE_LENGTH);
    const signature = createHmac('sha256', this.secret).update(`${start}${game_id}`).digest('hex');
    return start + signature.slice(0, SIGNATURE_LENGTH);
  }
}

/** A UUID that depends only on the text. */
function hashToUuid(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

/** Tools request further parts of a file with ranges. */
const startsDownload = ({ headers: { range } }: Request) =>
  range === undefined || /^bytes=0+-/.test(range.trim());

function buildFileName(
  { file_key, file_url, filename }: BuildFileRow,
  { file_type, build_id }: DownloadBuildRequest,
): string {
  const location = file_key ?? (file_url && new URL(file_url).pathname);
  if (location === null) throw invalidBuildFile();
  if (file_type === 'archive') return filename ?? (location.split('/').at(-1) || 'archive');
  return `build-${build_id}.${file_type === 'patch' ? 'pwr' : 'pws'}`;
}
