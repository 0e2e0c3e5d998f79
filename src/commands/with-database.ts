import { openDatabase, type OpenDatabase } from '../dev/open-database';
import { interruptible } from '../platform/config/environment';
import { settingsOfThisProcess } from '../process-settings';
import { temporaryProblem } from '../platform/database/reachable';

export const EXIT_INTERRUPTED = 130;

export const say = (line: string) => console.error(line);

/**
 * Runs a command with the store's database, and closes it. Ctrl-C aborts the signal and sets the exit status.
 */
export const withDatabase = (
  work: (database: OpenDatabase, interrupted: AbortSignal) => Promise<void>,
): Promise<void> =>
  interruptible(async (interrupted) => {
    try {
      const database = await openDatabase(settingsOfThisProcess(), 'join-or-start', say, interrupted);
      try {
        await work(database, interrupted);
      } finally {
        await database.stop();
      }
    } catch (error) {
      if (!interrupted.aborted) throw temporaryProblem(error) ?? error;
    }
    if (interrupted.aborted) process.exitCode = EXIT_INTERRUPTED;
  });
