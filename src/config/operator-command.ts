import type { INestApplicationContext } from '@nestjs/common';

/**
 * Runs an operator's command with all services and the database. Starts the embedded database if it is not running. Ctrl-C
 * aborts the signal; an error is printed, with exit code 1.
 */
export type CommandRunner = (
  work: (app: INestApplicationContext, signal: AbortSignal) => Promise<void>,
  options?: {
    /** false: reads only the code's own declarations. */
    database?: boolean;
    /** Makes the store of the embedded database where there is none. */
    makesStore?: boolean;
  },
) => Promise<void>;
