import 'reflect-metadata';
import { migrate } from '../../src/platform/database/migrate';

/** Migrates an empty database to the schema that every test file starts from. */
export async function migrateTemplate(url: string): Promise<void> {
  await migrate({ DATABASE_URL: url }, () => undefined);
}
