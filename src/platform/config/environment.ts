import { existsSync } from 'node:fs';
import { loadSettings } from './load-settings';
import type { Settings } from './settings';
import { OperatorError } from '../errors/operator-error';

/** Reads the environment and the `.env` file of the current folder. */
export function readSettings(moreProblems: (settings: Settings) => string[]): Settings {
  if (existsSync('.env')) process.loadEnvFile('.env');
  return loadSettings(process.env, moreProblems);
}

/** A command with its own settings reads them here. */
export const environmentOfThisProcess = (): NodeJS.ProcessEnv => process.env;

export const startedByNpm = () => Boolean(process.env.npm_lifecycle_event);

// Read before .env, which the commands read themselves.
const TYPED_DATA_DIR = process.env.DATA_DIR;

/** The operator's command as typed here, for the same store: in a clone of the project npm runs it. */
export const commandName = () =>
  (TYPED_DATA_DIR ? `DATA_DIR=${shellWord(TYPED_DATA_DIR)} ` : '') +
  (['gamewharf', 'start'].includes(process.env.npm_lifecycle_event ?? '')
    ? 'npm run --silent gamewharf --'
    : 'gamewharf');

const shellWord = (text: string) =>
  /^[\w./~:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** The text of a fatal error: a sentence for the operator, or the stack of a bug. */
export function explain(error: unknown): string {
  if (error instanceof OperatorError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs work with a signal that Ctrl-C, SIGTERM or a closed terminal aborts. Until the work is done, they don't end the
 * process themselves.
 */
export async function interruptible<Result>(
  work: (interrupted: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const name of ENDING) process.on(name, abort);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of ENDING) process.off(name, abort);
  }
}
