import { existsSync } from 'node:fs';
import { loadSettings, type Settings } from './settings';
import { OperatorError } from './operator-error';

/** The environment, with what a `.env` file in the current folder adds to it. */
export function settingsOfThisProcess(): Settings {
  if (existsSync('.env')) process.loadEnvFile('.env');
  return loadSettings(process.env);
}

/** The last word of a process that cannot go on: a sentence for the operator, or a stack where the fault is ours. */
export function explain(error: unknown): string {
  if (error instanceof OperatorError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Aborted by Ctrl-C or SIGTERM, which no longer end the process by themselves then. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => controller.abort());
  return controller.signal;
}
