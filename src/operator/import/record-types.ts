import { apiKeyType } from './record-types/api-key';
import { BUILD } from './record-types/build';
import { BUNDLE } from './record-types/bundle';
import { COLLECTION } from './record-types/collection';
import { DOWNLOAD_KEY } from './record-types/download-key';
import { GAME } from './record-types/game';
import { OAUTH_APPLICATION } from './record-types/oauth-application';
import { PURCHASE } from './record-types/purchase';
import type { RecordType } from './record-types/record-type';
import { UPLOAD } from './record-types/upload';
import { USER } from './record-types/user';

/** Lists the types in the order in which they are written. `pepper`: for the hashes of API keys. */
export const recordTypes = (pepper: Buffer): RecordType[] => [
  USER,
  GAME,
  BUNDLE,
  PURCHASE,
  DOWNLOAD_KEY,
  COLLECTION,
  BUILD,
  UPLOAD,
  apiKeyType(pepper),
  OAUTH_APPLICATION,
];
