import { Controller, Get, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { Public } from '../auth/access';
import { apiError } from '../platform/http/api-error';
import { Parameters } from '../platform/http/read-parameters';
import { SelectorParameter } from '../platform/http/parameters';
import { FileStorage } from './storage/file-storage';
import { FolderStorage } from './storage/folder-storage';

class FileRequest {
  @SelectorParameter('Names one file and the time at which the URL expires', { in: 'path' })
  token: string;

  @SelectorParameter('Name of the file', { in: 'path' })
  filename: string;
}

/** Serves the files of a local folder to anyone with a signed URL. */
@ApiExcludeController()
@Controller('files')
export class FilesController {
  constructor(private readonly storage: FileStorage) {}

  @Get(':token/:filename')
  @Public()
  async file(@Parameters() { token, filename }: FileRequest, @Res() res: Response): Promise<void> {
    const { storage } = this;
    const key = storage instanceof FolderStorage ? storage.keyIn(token, filename) : undefined;
    if (key === undefined) throw apiError(403, 'invalid or expired download link');
    const file = await (storage as FolderStorage).find(key);
    if (!file) throw apiError(404, 'invalid file');
    // A long download doesn't count as work. The minimum transfer rate applies.
    res.req.exchange.leave();
    res.attachment(filename);
    await new Promise<void>((resolve, reject) => {
      const { root, path } = file;
      res.sendFile(path, { root, dotfiles: 'allow', cacheControl: false }, (error?: Error) =>
        error && !res.headersSent ? reject(error) : resolve(),
      );
    });
  }
}
