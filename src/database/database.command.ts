import type { Command } from 'commander';
import { interruption, settingsOfThisProcess } from '../config/environment';
import { migrate } from './migrate';
import { openDatabase } from './open-database';

export function registerDatabaseCommands(program: Command): void {
  program
    .command('migrate')
    .description('Bring the database to the schema of this version; safe while older replicas serve.')
    .action(async () => {
      const say = (line: string) => console.error(line);
      const interrupted = interruption();
      const database = await openDatabase(settingsOfThisProcess(), 'join-or-start', say, interrupted);
      interrupted.addEventListener('abort', () => void database.stop().finally(() => process.exit(130)));
      try {
        const done = await migrate(database.settings, say);
        console.log(
          done.length === 0 ? 'The schema is up to date.' : done.map((name) => `ran ${name}`).join('\n'),
        );
      } finally {
        await database.stop();
      }
    });
}
