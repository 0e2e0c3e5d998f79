import type { INestApplication } from '@nestjs/common';
import { Database } from '../../src/database/database';
import type { Statement } from '../../src/database/statement';
import { theApp } from './store';

// Sent by timers, for all requests of some time.
const BESIDE_REQUESTS = /^(write_api_key_uses|look_for_\w+|sweep_\w+)$/;

/** The names of the statements that the service sends for the work. */
export async function statementsOf(
  work: () => Promise<unknown>,
  app: INestApplication = theApp(),
): Promise<string[]> {
  const rows = jest.spyOn(app.get(Database), 'rows');
  try {
    await work();
    return rows.mock.calls
      .map(([statement]: [Statement, unknown]) => statement.name)
      .filter((name) => !BESIDE_REQUESTS.test(name));
  } finally {
    rows.mockRestore();
  }
}

/** Without the one about the credential, which depends on how long ago it was last used. */
export const statementsAfterCredential = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await statementsOf(work)).filter((name) => name !== 'live_api_keys');
