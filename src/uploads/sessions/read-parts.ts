import type { FileStorage } from '../storage/file-storage';
import type { UploadPart } from './upload-part.entity';

export type Part = Pick<UploadPart, 'file_key' | 'start'> & { size: number };

/** The bytes of a session. */
export async function* readParts(storage: FileStorage, parts: readonly Part[]): AsyncGenerator<Buffer> {
  for (const { file_key, size } of parts) yield* storage.read(file_key, 0, size);
}
