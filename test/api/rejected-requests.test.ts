import { RequestLog } from '../../src/platform/observability/request-log';
import { logged, theApp, useStore } from '../support/app';
import { make } from '../support/make';

useStore({ RATE_LIMIT: 'address=3/60s' });

const lines = () =>
  logged
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { status?: number; count?: number });

test('logs the first rejected request of a client, and then a count', async () => {
  const user = (await make.user()).with(undefined);
  logged.length = 0;
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) statuses.push((await user.get('/wharf/latest')).status);
  const rejected = statuses.filter((status) => status === 429).length;
  expect(rejected).toBeGreaterThan(4);
  expect(lines().filter(({ status }) => status === 429)).toHaveLength(1);
  theApp().get(RequestLog).flushRejected();
  expect(lines().flatMap(({ count }) => count ?? [])).toEqual([rejected - 1]);
});
