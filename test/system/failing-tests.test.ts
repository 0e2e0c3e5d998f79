import { spawnSync } from 'node:child_process';

test('the report of a failed test contains the error that the service logged during it', () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    [
      'node_modules/jest/bin/jest.js',
      '--testMatch=<rootDir>/test/system/fixtures/broken-handler.ts',
      '--testPathIgnorePatterns=/node_modules/',
    ],
    { encoding: 'utf8' },
  );
  const [, first = '', logged = '', second = ''] = stderr.split('●');
  expect({ status, stderr }).toMatchObject({ status: 1 });
  expect(first).toContain('Received: "{\\"errors\\":[\\"internal server error\\"]}"');
  expect(logged).toMatch(/The service logged:\s+request failed\n.*\n *TypeError: the cause of the failure\n/);
  expect(logged).toContain('test/system/fixtures/broken-handler.ts:13');
  expect(second).not.toContain('The service logged');
});
