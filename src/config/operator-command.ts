import type { INestApplicationContext } from '@nestjs/common';

/**
 * Runs an operator's command with all services and the database. Starts the embedded database if it is not running. Ctrl-C
 * aborts the signal; an error is printed, with exit code 1.
 */
export type CommandRunner = (
  work: (app: INestApplicationContext, signal: AbortSignal) => Promise<void>,
  /** A command that only reads the code's own declarations needs no database. */
  options?: { database: boolean },
) => Promise<void>;
