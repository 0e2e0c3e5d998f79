import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { apiError } from '../platform/http/api-error';
import { IdempotencyService, type RetryKey } from '../platform/idempotency/idempotency.service';
import { type AccessRow, keyUsed } from './download-access';
import { DownloadCounts } from './download-counts.service';
import { FileStorage } from './storage/file-storage';
import type {
  DownloadBuildRequest,
  DownloadSessionResponse,
  DownloadUploadRequest,
  UploadsRequest,
} from './download.dto';
import { type Downloader, UploadsService } from './uploads.service';

interface StoredFile {
  file_key: string | null;
  file_url: string | null;
}

@Injectable()
export class DownloadsService {
  constructor(
    private readonly uploads: UploadsService,
    private readonly storage: FileStorage,
    private readonly counts: DownloadCounts,
    private readonly idempotency: IdempotencyService,
  ) {}

  /** The URL of an upload's file, for a user who may download it. */
  async upload(request: DownloadUploadRequest, credential: Downloader, req: Request): Promise<string> {
    const upload = await this.uploads.file(request, credential);
    const url = upload.external_url ?? this.urlOf(upload, upload.filename);
    this.count(upload, upload.game_id, request.uuid, req);
    return url;
  }

  /** The URL of a build's archive, for a user who may download it. */
  async build(request: DownloadBuildRequest, credential: Downloader, req: Request): Promise<string> {
    const build = await this.uploads.build(request, credential);
    if (request.file_type !== 'archive' || request.sub_type !== 'default' || build.size === null)
      throw apiError(404, 'invalid build file');
    const url = this.urlOf(build, build.filename ?? nameIn(build));
    this.count(build, build.game_id, request.uuid, req);
    return url;
  }

  /** Nothing is stored until a download of the session is counted. */
  async session(
    request: UploadsRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<DownloadSessionResponse> {
    await this.uploads.requireGame(request.game_id, credential);
    const session = () => ({ uuid: randomUUID() });
    return key ? this.idempotency.once(key, request, { statements: [], result: session }) : session();
  }

  private urlOf({ file_url, file_key }: StoredFile, filename: string): string {
    return file_url ?? this.storage.urlOf(file_key!, filename);
  }

  private count(access: AccessRow, game_id: number, uuid: string | undefined, req: Request): void {
    if (uuid === undefined && !startsDownload(req)) return;
    this.counts.add({ game_id, download_key_id: keyUsed(access), uuid });
  }
}

/** Tools request further parts of a file with ranges. */
const startsDownload = ({ headers: { range } }: Request) =>
  range === undefined || /^bytes=0+-/.test(range.trim());

const nameIn = ({ file_key, file_url }: StoredFile): string =>
  (file_key ?? new URL(file_url!).pathname).split('/').at(-1) || 'archive';
