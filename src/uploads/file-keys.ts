import { randomUUID } from 'node:crypto';

/** The keys of the files that this service stores. Those of imported records can have any other form. */
export const KEY_OF_PUT = '^[0-9]+/[0-9a-f-]{36}/';

const MAX_NAME = 100;

/**
 * A key of its own for every file, so that stored ones never change. It ends with the file name, as far as every file
 * system can store it.
 */
export const newFileKey = ({ game_id, filename }: { game_id: number; filename: string }): string =>
  `${game_id}/${randomUUID()}/${filename.replace(/[^\w.-]+|\.(?=\.)/g, '_').slice(-MAX_NAME)}`;
