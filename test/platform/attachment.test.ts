import { parse } from 'content-disposition';
import { attachment } from '../../src/uploads/storage/attachment';

test.each([
  'game.zip',
  "rock'n*roll.zip",
  'a;b=c.zip',
  'x"; filename="y.exe',
  'møøn "1".zip',
  '100% *.zip',
  '*',
])('a client reads the file name %s', (filename) => {
  const header = attachment(filename);
  expect(parse(header)).toMatchObject({ type: 'attachment', parameters: { filename } });
  expect(header).toMatch(/^attachment; filename="/);
});
