import { createLogger } from '../../src/platform/observability/logger';
import { terminalLog } from '../../src/dev/terminal-log';

function printed(hasColors: boolean, write: (logger: ReturnType<typeof createLogger>) => void): string {
  let shown = '';
  const out = { hasColors: () => hasColors, write: (text: string) => ((shown += text), true) };
  write(createLogger('info', terminalLog(out as unknown as NodeJS.WriteStream)));
  return shown;
}

test('a request is one short line', () => {
  const request = { request_id: 'x', method: 'GET', route: '/profile', status: 200, ms: 5.61 };
  expect(printed(false, (logger) => logger.info(request, 'request'))).toBe('GET /profile 200 6 ms\n');
  expect(printed(true, (logger) => logger.info(request, 'request'))).toBe('GET /profile 200 6 ms\n');
  expect(printed(false, (logger) => logger.info({ ...request, route: null, status: 404 }, 'request'))).toBe(
    'GET (unknown path) 404 6 ms\n',
  );
});

test('errors are red and keep their stack, without control characters', () => {
  const shown = printed(true, (logger) =>
    logger.error({ err: new Error('no \u001b[2Jroom') }, 'request failed'),
  );
  expect(shown).toMatch(/^\u001b\[31merror: request failed Error: no \[2Jroom\n +at [^]*\u001b\[39m\n$/);
});
