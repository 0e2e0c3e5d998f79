import type { INestApplication } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner';
import { SigningKeysService } from '../../src/auth/jwt/signing-keys.service';
import { Database } from '../../src/platform/database/database';
import { theApp } from './app';

// Statements that timers send for all requests of a period.
const BESIDE_REQUESTS =
  /^(write_api_key_uses|count_api_key_requests|store_audit_events|short_lock_timeout|new_download_sessions|add_downloads|add_key_downloads|sweep_\w+|claim_build_job|given_up_builds|late_builds|oldest_build_job|due_unused_files|expired_upload_sessions|poll_webhook_deliveries)$/;

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
  await postponeReloads(app);
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

/** Reloads of signing keys send the same statement as requests: the next one is ten seconds after this. */
async function postponeReloads(app: INestApplication): Promise<void> {
  (app.get(SchedulerRegistry).getInterval('signing keys') as NodeJS.Timeout).refresh();
  await app.get(SigningKeysService)['reloads'];
}

/** Leaves out the credential lookup, which depends on the time of its last use. */
export const statementsAfterCredential = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await recordStatements(work)).filter((name) => name !== 'live_api_keys');
