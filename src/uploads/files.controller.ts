import { Controller, Get } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/access/access';
import { forbidden } from '../auth/access/errors';
import { Params } from '../platform/input/params.decorator';
import { NonEmptyText } from '../platform/input/parameters';
import { WebResponse } from '../platform/output/response';
import { DownloadCost } from './download-cost';
import { FileResponses } from './file-responses';
import { FileStorage } from './storage/file-storage';
import { FolderStorage } from './storage/folder-storage';

class FileRequest {
  @NonEmptyText('Signed text that identifies the file and the expiry of the URL')
  token: string;

  @NonEmptyText('Name of the file')
  filename: string;
}

/** Serves the files of a local folder to anyone with a signed URL. */
@ApiExcludeController()
@Controller('files')
export class FilesController {
  constructor(
    private readonly storage: FileStorage,
    private readonly responses: FileResponses,
  ) {}

  @Get(':token/:filename')
  @DownloadCost()
  @Public()
  file(@Params() { token, filename }: FileRequest): WebResponse {
    const { storage } = this;
    if (storage instanceof FolderStorage) {
      const key = storage.keyIn(token, filename);
      if (key !== undefined) return this.responses.response(() => storage.find(key), filename);
    }
    throw forbidden('invalid or expired download link');
  }
}
