import type { INestApplication } from '@nestjs/common';
import { Database } from '../../src/database/database';
import type { Statement } from '../../src/database/statement';
import { theApp } from './store';

/** The names of the statements that the service sends while the work is done. */
export async function statementsOf(
  work: () => Promise<unknown>,
  app: INestApplication = theApp(),
): Promise<string[]> {
  const rows = jest.spyOn(app.get(Database), 'rows');
  try {
    await work();
    return rows.mock.calls.map(([statement]: [Statement, unknown]) => statement.name);
  } finally {
    rows.mockRestore();
  }
}

const OF_CREDENTIALS = ['live_api_keys', 'write_api_key_uses'];

/** Without those about the credential, which depend on how long ago it was last used. */
export const statementsAfterCredential = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await statementsOf(work)).filter((name) => !OF_CREDENTIALS.includes(name));
