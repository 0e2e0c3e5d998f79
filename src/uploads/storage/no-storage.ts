import { OperatorError } from '../../platform/errors/operator-error';
import { apiError } from '../../platform/errors/api-error';
import { FileStorage } from './file-storage';

export const NOT_CONFIGURED =
  'No file storage is configured: set FILES_DIR, or FILES_S3_ENDPOINT and FILES_S3_BUCKET.';

/** Without a bucket or folder, only files whose records have a URL can be downloaded. */
export class NoStorage extends FileStorage {
  override downloadUrl(): string {
    // Clients would retry a 503 forever.
    throw apiError(501, 'no file storage is configured');
  }

  override put(): Promise<void> {
    throw new OperatorError(NOT_CONFIGURED);
  }

  override read(): AsyncGenerator<Buffer> {
    throw new OperatorError(NOT_CONFIGURED);
  }

  override delete(): Promise<void> {
    throw new OperatorError(NOT_CONFIGURED);
  }
}
