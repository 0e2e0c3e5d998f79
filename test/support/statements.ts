import type { INestApplication } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner';
import { Database } from '../../src/platform/database/database';
import { theApp } from './app';

// Statements that timers send for all requests of a period.
const BESIDE_REQUESTS =
  /^(write_api_key_uses|count_api_key_requests|store_audit_events|sweep_\w+|claim_build_job|given_up_builds|late_builds|expired_upload_sessions|poll_webhook_deliveries)$/;

const OF_TRANSACTIONS = /^(START TRANSACTION|COMMIT|ROLLBACK)/;
const statementName = (text: string) =>
  (/^\s*(\w+)\b.*?\b(?<!extract\(epoch )(?:FROM|INTO|UPDATE)\s+"?(\w+)/s.exec(text) ?? [text])
    .slice(1)
    .join(' ')
    .toLowerCase();

/** The names of the statements that the service sends during the work; for TypeORM's, the command and table. */
export async function recordStatements(
  work: () => Promise<unknown>,
  app: INestApplication = theApp(),
): Promise<string[]> {
  const database = app.get(Database);
  const source = app.get(DataSource);
  const names: string[] = [];
  const rows = jest.spyOn(database, 'rows');
  const executed = jest.spyOn(database, 'execute');
  const { query } = PostgresQueryRunner.prototype;
  const queries = jest.spyOn(PostgresQueryRunner.prototype, 'query').mockImplementation(function (
    this: PostgresQueryRunner,
    text: string,
    ...more: unknown[]
  ) {
    if (this.connection === source && !OF_TRANSACTIONS.test(text)) names.push(statementName(text));
    return query.call(this, text, ...(more as [])) as never;
  });
  try {
    await work();
    names.unshift(
      // In a transaction, `rows` calls `execute`.
      ...rows.mock.calls.flatMap(([statement, , manager]: Parameters<Database['rows']>) =>
        manager ? [] : statement.name,
      ),
      ...executed.mock.calls.flatMap(([statements]) => statements.map(({ statement }) => statement.name)),
    );
    return names.filter((name) => !BESIDE_REQUESTS.test(name));
  } finally {
    rows.mockRestore();
    executed.mockRestore();
    queries.mockRestore();
  }
}

/** Leaves out the credential lookup, which depends on the time of its last use. */
export const statementsAfterCredential = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await recordStatements(work)).filter((name) => name !== 'live_api_keys');
