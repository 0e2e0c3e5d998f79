import { importLines, OPERATOR_TOKEN, importErrors } from '../support/importing';
import { game, user, upload, build } from '../support/records';
import { useStore } from '../support/app';
import { sql } from '../support/sql';

useStore({ OPERATOR_TOKEN });

beforeEach(async () => {
  await sql('TRUNCATE users, games CASCADE');
  await importLines(user(1), game(1));
});

const MD5 = '0cc175b9c0f1b6a831c399e269772661';

describe('uploads', () => {
  test('stores a file with its key, size and MD5', async () => {
    const file = { key: 'moon/moon 1+2.zip', size: 42, md5_hash: MD5.toUpperCase() };
    expect(await importLines(upload(1, { file, traits: ['p_windows', 'demo'], upload_type: 'mod' }))).toEqual(
      ['uploads 1 new, 0 changed, 0 unchanged'],
    );
    expect(
      await sql('SELECT type, traits, position, file_key, file_url, size, md5_hash FROM uploads'),
    ).toEqual([
      {
        type: 'mod',
        traits: ['p_windows', 'demo'],
        position: 0,
        file_key: file.key,
        file_url: null,
        size: 42,
        md5_hash: MD5,
      },
    ]);
    expect(await importLines(upload(1, { file }))).toEqual(['uploads 0 new, 0 changed, 1 unchanged']);
  });

  test('a partial record keeps absent fields and can replace the file of an upload with a channel', async () => {
    await importLines(upload(1, { file: { url: 'https://cdn.example.com/a.zip', size: 1 }, position: 3 }));
    expect(await importLines({ type: 'upload', id: 1, position: 4 })).toEqual([
      'uploads 0 new, 1 changed, 0 unchanged',
    ]);
    await importLines({ type: 'upload', id: 1, file: null, channel_name: 'windows' });
    expect(
      await sql(
        'SELECT position, file_url, size, channel_name, updated_at > created_at AS updated FROM uploads',
      ),
    ).toEqual([{ position: 4, file_url: null, size: null, channel_name: 'windows', updated: true }]);
  });

  const oneSource = 'upload 1: exactly one of file, channel_name, external_url is required';

  test('a partial record cannot leave two sources or none', async () => {
    await importLines(upload(1, { channel_name: 'windows' }));
    expect(await importErrors({ type: 'upload', id: 1, external_url: 'https://example.com/' })).toEqual([
      `line 1: ${oneSource}`,
    ]);
    expect(await importErrors({ type: 'upload', id: 1, channel_name: null })).toEqual([
      `line 1: ${oneSource}`,
    ]);
  });

  test.each<[object, string | RegExp]>([
    [{}, oneSource],
    [{ channel_name: 'windows', external_url: 'https://example.com/' }, oneSource],
    [{ channel_name: 'windows', game_id: 90 }, 'upload 1: game 90 does not exist'],
    [{ external_url: 'http://example.com/' }, 'upload 1: external_url must be an https URL'],
    [{ external_url: 'https://example.com:x/' }, 'upload 1: external_url must be an https URL'],
    [{ channel_name: 'windows', traits: ['p_amiga'] }, /traits\[0\] must be one of p_windows, /],
    [{ channel_name: 'windows', upload_type: 'film' }, /upload_type must be one of default, html, /],
    [{ channel_name: 'windows', filename: '../moon' }, /filename must be a file name without/],
    [{ file: 'moon.zip' }, 'upload 1: file must be an object'],
    [{ file: { size: 1 } }, 'upload 1: file must have exactly one of key, url'],
    [
      { file: { key: 'a', url: 'https://example.com/a', size: 1 } },
      'upload 1: file must have exactly one of key, url',
    ],
    [{ file: { key: 'a' } }, 'upload 1: file.size is required'],
    [{ file: { key: 'a', size: -1 } }, 'upload 1: file.size must be between 0 and 9007199254740991'],
    [{ file: { key: 'a', size: 1, sha1: 'x' } }, 'upload 1: file.sha1 is unknown'],
    [{ file: { key: 'a', size: 1, md5_hash: 'x' } }, 'upload 1: file.md5_hash must be 32 hexadecimal digits'],
    [{ file: { url: 'http://example.com/a', size: 1 } }, 'upload 1: file.url must be an https URL'],
    ...['/a', '../a', 'a/../b', 'a\nb', ''].map((key): [object, RegExp] => [
      { file: { key, size: 1 } },
      /upload 1: file.key must (be the path of a file|not be empty)/,
    ]),
  ])('reports %j', async (fields, problem) => {
    const found = await importErrors(upload(1, fields));
    expect(found).toEqual([
      typeof problem === 'string' ? `line 1: ${problem}` : expect.stringMatching(problem),
    ]);
  });

  test('a build has a file and the time of its last change', async () => {
    await importLines(build(1), upload(1, { channel_name: 'windows' }));
    expect(await sql('SELECT size, updated_at FROM builds')).toEqual([{ size: null, updated_at: null }]);
    await importLines({ type: 'build', id: 1, file: { key: 'moon/1.zip', size: 7 } });
    expect(
      await sql('SELECT file_key, size, md5_hash, updated_at IS NOT NULL AS updated FROM builds'),
    ).toEqual([{ file_key: 'moon/1.zip', size: 7, md5_hash: null, updated: true }]);
  });

  test('an upload is deleted with its game or on its own', async () => {
    await importLines(build(1), upload(1, { channel_name: 'windows' }), upload(2, { channel_name: 'linux' }));
    expect(await importLines({ type: 'upload', id: 2, deleted: true })).toEqual([
      'uploads 0 new, 0 changed, 0 unchanged, 1 deleted',
    ]);
    await importLines({ type: 'game', id: 1, deleted: true });
    expect(await sql('SELECT FROM uploads')).toEqual([]);
  });
});

test('a large import writes uploads', async () => {
  const records = Array.from({ length: 12_000 }, (_, i) =>
    upload(i + 1, { external_url: 'https://example.com/' }),
  );
  expect(await importLines(...records)).toEqual(['uploads 12000 new, 0 changed, 0 unchanged']);
});
