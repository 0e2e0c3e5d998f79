import { apiKeyType } from './record-types/api-key';
import { BUILD_RECORD } from './record-types/build';
import { BUNDLE_RECORD } from './record-types/bundle';
import { COLLECTION_RECORD } from './record-types/collection';
import { DOWNLOAD_KEY_RECORD } from './record-types/download-key';
import { GAME_RECORD } from './record-types/game';
import { OAUTH_APPLICATION_RECORD } from './record-types/oauth-application';
import { PURCHASE_RECORD } from './record-types/purchase';
import type { RecordType } from './record-types/record-type';
import { UPLOAD_RECORD } from './record-types/upload';
import { USER_RECORD } from './record-types/user';

/** Lists the types in the order in which they are written. The peppers are for the hashes of API keys. */
export const recordTypes = (pepper: Buffer, previousPeppers: string[] = []): RecordType[] => [
  USER_RECORD,
  GAME_RECORD,
  BUNDLE_RECORD,
  PURCHASE_RECORD,
  DOWNLOAD_KEY_RECORD,
  COLLECTION_RECORD,
  BUILD_RECORD,
  UPLOAD_RECORD,
  apiKeyType(pepper, previousPeppers),
  OAUTH_APPLICATION_RECORD,
];
