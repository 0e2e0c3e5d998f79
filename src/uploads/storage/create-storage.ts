import type { Clock } from '../../platform/config/clock';
import type { Settings } from '../../platform/config/settings';
import type { FileStorage } from './file-storage';
import { FolderStorage } from './folder-storage';
import { NoStorage } from './no-storage';
import { S3Storage } from './s3-storage';

type StorageSettings = Pick<Settings, Extract<keyof Settings, `FILES_${string}`> | 'API_KEY_PEPPER'>;

/** The storage of the settings. `service`: for the URLs of files in a folder. */
export function createStorage(
  settings: StorageSettings,
  clock: Clock,
  service: { readonly url: string },
): FileStorage {
  if (settings.FILES_S3_BUCKET !== undefined) return new S3Storage(settings, clock);
  return settings.FILES_DIR === undefined ? new NoStorage() : new FolderStorage(settings, clock, service);
}
