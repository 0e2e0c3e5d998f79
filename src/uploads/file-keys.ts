import { randomUUID } from 'node:crypto';

/**
 * The keys of the files that this service stores, which begin with the ID of their game. Imported records
 * have others.
 */
export const OWN_KEY = '^[0-9]{1,18}/([0-9a-f-]{36}|builds)/';

const MAX_FILENAME = 100;

/**
 * A separate key for every file, so that stored ones never change. It ends with the file name, as far as every file
 * system can store it.
 */
export const newFileKey = ({ game_id, filename }: { game_id: number; filename: string }): string =>
  `${game_id}/${randomUUID()}/${filename.replace(/[^\w.-]+|\.(?=\.)/g, '_').slice(-MAX_FILENAME)}`;
