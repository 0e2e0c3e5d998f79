import type { INestApplicationContext } from '@nestjs/common';

/**
 * Runs an operator's command with all services and the database of the running store, or starts the embedded one for as
 * long as it takes. Ctrl-C aborts the signal; what the command throws becomes its last words and exit code 1.
 */
export type CommandRunner = (
  work: (app: INestApplicationContext, signal: AbortSignal) => Promise<void>,
  /** A command that only reads the code's own declarations needs no database. */
  options?: { database: boolean },
) => Promise<void>;
