import { createHmac } from 'node:crypto';

/** Only this hash is stored. Without the pepper, which is not in the database, a stolen table is of no use. */
export const hashApiKey = (key: string, pepper: Buffer): Buffer =>
  createHmac('sha256', pepper).update(key).digest();
