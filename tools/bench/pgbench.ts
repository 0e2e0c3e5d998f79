import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bind, type Statement } from '../../src/platform/database/statement';
import { findPgbench } from './servers';
import type { Store } from './store';

/** Statements for pgbench: each parameter replaced by a variable or a literal. */
export function scriptLine(statement: Statement, given: Record<string, string>): string {
  const values = bind(statement, given).values as string[];
  return `${statement.text.replace(/\$(\d+)/g, (_, n: string) => values[Number(n) - 1]!).replace(/\s+/g, ' ')};`;
}

/** One transaction, or one statement, preceded by its variables. */
export interface Script {
  variables: string[];
  lines: string[];
}

export const transaction = (variables: string[], statements: string[]): Script => ({
  variables,
  lines: ['BEGIN;', ...statements, 'COMMIT;'],
});

/** Executions per second of the scripts by pgbench, each with the same weight; undefined without pgbench. */
export async function pgbenchRate(
  { folder, url }: Pick<Store, 'folder' | 'url'>,
  scripts: Script[],
  connections: number,
  seconds: number,
): Promise<number | undefined> {
  const pgbench = findPgbench();
  if (!pgbench) return undefined;
  const files = scripts.flatMap(({ variables, lines }, i) => {
    const file = join(folder, `pgbench-${i}.sql`);
    writeFileSync(file, [...variables.map((one) => `\\set ${one}`), ...lines].join('\n'));
    return ['-f', file];
  });
  const { stdout } = await promisify(execFile)(
    pgbench,
    [
      ...['-n', '-M', 'prepared', '-j', '2', '-c', String(connections), '-T', String(Math.ceil(seconds))],
      ...files,
      url,
    ],
    // Statements are planned once per connection, like those of the servers.
    { env: { ...process.env, PGOPTIONS: '-c plan_cache_mode=force_generic_plan' } },
  );
  return Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
}
