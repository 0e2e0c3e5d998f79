import { extname } from 'node:path';
import { Controller, Get, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { Public } from '../auth/access/access';
import { forbidden } from '../auth/access/errors';
import { ApiError, apiError, serviceUnavailable } from '../platform/errors/api-error';
import { Params } from '../platform/input/params.decorator';
import { NonEmptyText } from '../platform/input/parameters';
import { attachment } from './storage/attachment';
import { DownloadCost } from './download-cost';
import { FileStorage } from './storage/file-storage';
import { FolderStorage } from './storage/folder-storage';

class FileRequest {
  @NonEmptyText('Signed text that identifies the file and the expiry of the URL')
  token: string;

  @NonEmptyText('Name of the file')
  filename: string;
}

/** As `send`, the library of Express, reports it. */
type SendError = Error & { status?: number; code?: string; headers?: Record<string, string> };

function problemOf({ status, code, headers }: SendError): ApiError {
  if (status === 416) return new ApiError(416, ['range not satisfiable'], headers);
  if (status === 412) return apiError(412, 'precondition failed');
  return status === 404 || code === 'EISDIR' ? invalidFile() : serviceUnavailable();
}

const invalidFile = () => apiError(404, 'invalid file');

/** Serves the files of a local folder to anyone with a signed URL. */
@ApiExcludeController()
@Controller('files')
export class FilesController {
  constructor(private readonly storage: FileStorage) {}

  @Get(':token/:filename')
  @DownloadCost()
  @Public()
  async file(@Params() { token, filename }: FileRequest, @Res() res: Response): Promise<void> {
    const { storage } = this;
    const key = storage instanceof FolderStorage ? storage.keyIn(token, filename) : undefined;
    if (key === undefined) throw forbidden('invalid or expired download link');
    const file = await (storage as FolderStorage).find(key);
    if (!file) throw invalidFile();
    // A long download doesn't count as work. The minimum transfer rate applies.
    res.req.exchange.leave();
    res.type(extname(filename) || 'bin').setHeader('Content-Disposition', attachment(filename));
    res.setHeader('ETag', file.etag);
    await new Promise<void>((resolve, reject) => {
      const { root, path } = file;
      res.sendFile(path, { root, dotfiles: 'allow', cacheControl: false }, (error?: SendError) =>
        error && !res.headersSent ? reject(problemOf(error)) : resolve(),
      );
    });
  }
}
