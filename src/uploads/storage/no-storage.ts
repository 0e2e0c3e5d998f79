import { Logger } from '@nestjs/common';
import { OperatorError } from '../../platform/errors/operator-error';
import { serviceUnavailable } from '../../platform/errors/api-error';
import { FileStorage } from './file-storage';

const NOT_CONFIGURED =
  'No storage of files is configured: set FILES_DIR, or FILES_S3_ENDPOINT and FILES_S3_BUCKET.';

/** Without a bucket or folder, only files whose records have a URL can be downloaded. */
export class NoStorage extends FileStorage {
  private readonly log = new Logger('Files');

  override urlOf(): string {
    this.log.error(NOT_CONFIGURED);
    throw serviceUnavailable(60);
  }

  override put(): Promise<void> {
    throw new OperatorError(NOT_CONFIGURED);
  }

  override delete(): Promise<void> {
    throw new OperatorError(NOT_CONFIGURED);
  }
}
