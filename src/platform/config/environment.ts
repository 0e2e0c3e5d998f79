import { existsSync } from 'node:fs';
import { loadSettings } from './load-settings';
import type { Settings } from './settings';
import { OperatorError } from '../errors/operator-error';

/** Reads the environment and the `.env` file of the current folder. */
export function readSettings(moreProblems: (settings: Settings) => string[]): Settings {
  if (existsSync('.env')) process.loadEnvFile('.env');
  return loadSettings(process.env, moreProblems);
}

/** The environment, for commands with their own settings. */
export const environmentOfThisProcess = (): NodeJS.ProcessEnv => process.env;

export const startedByNpm = () => Boolean(process.env.npm_lifecycle_event);

/** A signal to npm or npx ends only its shell, so a server stops when its parent changes. */
export function watchParent(stop: () => void): void {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop();
  }, 250).unref();
}

// The value before `.env` is loaded, because the commands load that file themselves.
const TYPED_DATA_DIR = process.env.DATA_DIR;

/** The command in instructions for the operator, for the same data folder. In a clone, npm runs it. */
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
