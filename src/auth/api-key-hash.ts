import { createHmac } from 'node:crypto';

/** A key is stored as this alone: without the pepper, which the database never holds, a stolen table opens nothing. */
export const hashApiKey = (key: string, pepper: Buffer): Buffer =>
  createHmac('sha256', pepper).update(key).digest();
