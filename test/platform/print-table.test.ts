import { printTable } from '../../src/commands/print-table';

test('a table escapes control characters and aligns its columns', () => {
  const log = jest.spyOn(console, 'log').mockImplementation();
  printTable([
    ['a\u001b[2Jb\u009bc\r\n', 'x'],
    ['\u202egnp.exe\u2028', 'y'],
  ]);
  const lines = log.mock.calls.map(([line]) => String(line));
  log.mockRestore();
  expect(lines).toEqual([
    String.raw`a\u001b[2Jb\u009bc\u000d\u000a  x`,
    String.raw`\u202egnp.exe\u2028             y`,
  ]);
});
