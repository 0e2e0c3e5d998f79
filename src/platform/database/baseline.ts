import type { DataSource, MigrationInterface } from 'typeorm';
import { OperatorError } from '../errors/operator-error';

// The baseline is the first migrations of this version. Together they create the schema of the last migration of 0.1.
const LAST_OF_0_1 = 'ForeignKeysByIndex20261124700000';
const AFTER_BASELINE = '20261125000000';

const migrationStamp = (name: string) => name.slice(-AFTER_BASELINE.length);
const isOf01 = (name: string) => migrationStamp(name) <= migrationStamp(LAST_OF_0_1);
const isOfBaseline = (name: string) => !isOf01(name) && migrationStamp(name) < AFTER_BASELINE;

const migrationName = (migration: MigrationInterface) => migration.name ?? migration.constructor.name;
export const migrationNames = (source: DataSource) => source.migrations.map(migrationName);

/** The migrations that count as applied if `names` have run: those of 0.1 count as the whole baseline. */
export function asBaseline(names: string[], known: string[]): string[] {
  if (!names.some(isOf01)) return names;
  if (!names.includes(LAST_OF_0_1))
    throw new OperatorError(
      'The schema is older than that of the last 0.1 version. ' +
        'First upgrade the store to the last 0.1 version (commit 567beea): see the guide “Upgrade or uninstall”. Nothing was changed.',
    );
  return [...known.filter(isOfBaseline), ...names.filter((name) => !isOf01(name) && !isOfBaseline(name))];
}

/**
 * Records the baseline as applied in a store of 0.1. The old records stay, because replicas of 0.1 require them to
 * start.
 */
export async function adoptBaseline(source: DataSource): Promise<void> {
  const [found] = await source.query<{ found: boolean }[]>(
    `SELECT to_regclass('migrations') IS NOT NULL AS found`,
  );
  if (!found!.found) return;
  const rows = await source.query<{ name: string }[]>('SELECT name FROM migrations');
  const executed = rows.map(({ name }) => name);
  const applied = asBaseline(executed, migrationNames(source)).filter((name) => !executed.includes(name));
  await runOnly(source, applied, { fake: true });
}

/** Runs the pending migrations with these names. */
export async function runOnly(source: DataSource, names: string[], options?: { fake: boolean }) {
  const all = source.migrations.splice(0);
  source.migrations.push(...all.filter((one) => names.includes(migrationName(one))));
  await source.runMigrations(options);
  source.migrations.splice(0, Infinity, ...all);
}
