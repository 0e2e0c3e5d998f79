import { randomBytes } from 'node:crypto';

const RANDOM_BYTES = 18;

/** A prefix that people and secret scanners recognize, and 144 random bits. base64url, because URLs contain it. */
export const newDownloadKey = () => `gwdl_${randomBytes(RANDOM_BYTES).toString('base64url')}`;
