import { randomBytes } from 'node:crypto';

// 144 bits.
const RANDOM_BYTES = 18;

/** A prefix by which people and scanners know it, and what nobody guesses. Part of an address, so it has no other characters. */
export const newDownloadKey = () => `gwdl_${randomBytes(RANDOM_BYTES).toString('base64url')}`;
