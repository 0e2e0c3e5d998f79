import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../operator/import/record-types/fields';
import { createCalendar, STORE_DAYS } from './demo-calendar';

const UPLOADS_OF_GAME = [
  { name: 'windows', traits: ['p_windows'] },
  { name: 'linux', traits: ['p_linux'] },
  { name: 'osx', traits: ['p_osx'] },
  { name: 'demo', display_name: 'Demo', traits: ['demo', 'p_windows', 'p_linux', 'p_osx'] },
];

/** A zip archive with a README.txt. */
const ZIP = Buffer.from(
  'UEsDBBQAAAAAAAAAIQCNpNgINQAAADUAAAAKAAAAUkVBRE1FLnR4dEJyYXZlIEFyY2FkZQoKQSBmaWxlIG9mIHRoZSBkZW1vIHN0b3JlIG9mIE' +
    'dhbWV3aGFyZi4KUEsBAhQDFAAAAAAAAAAhAI2k2Ag1AAAANQAAAAoAAAAAAAAAAAAAAKQBAAAAAFJFQURNRS50eHRQSwUGAAAAAAEAAQA4AAAA' +
    'XQAAAAAA',
  'base64',
);

/** Writes the files of the first game into the folder, and returns the records of its uploads. */
export async function writeDemoUploads(folder: string, now: number): Promise<JsonObject[]> {
  const created_at = createCalendar(now)(STORE_DAYS - 30);
  const records: JsonObject[] = [];
  for (const { name, ...shown } of UPLOADS_OF_GAME) {
    const id = records.length + 1;
    const filename = `brave-arcade-${name}.zip`;
    const key = `1/demo/${filename}`;
    const path = join(folder, key);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, ZIP);
    const md5_hash = createHash('md5').update(ZIP).digest('hex');
    records.push({
      type: 'upload',
      id,
      game_id: 1,
      filename,
      ...shown,
      position: id - 1,
      file: { key, size: ZIP.length, md5_hash },
      created_at,
      updated_at: created_at,
    });
  }
  return records;
}
