import 'reflect-metadata';
import { migrate } from '../../src/platform/database/migrate';

/** Brings an empty database to the schema that every test file starts from. */
export async function migrateTemplate(url: string): Promise<void> {
  await migrate({ DATABASE_URL: url }, () => undefined);
  // Jest copies the globals of this process to every test file that it runs in band, and TypeORM would collect the entities of all of them.
  Reflect.deleteProperty(globalThis, 'typeormMetadataArgsStorage');
}
