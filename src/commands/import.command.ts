/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the services */
import { createReadStream, createWriteStream, openSync, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { type Commands, integerParser, type OperatorCommand } from './operator-command';
import { OperatorError, UsageError } from '../platform/errors/operator-error';
import { Settings } from '../platform/config/settings';
import { fileError, readError } from './input-output';
import { confirm } from './terminal';
import { importProgress, ProgressDisplay } from './progress';
import { ServiceUrl } from '../platform/server/service-url';
import { demoRecords } from '../dev/demo/demo';
import { toNdjson } from '../dev/demo/demo-file';
import { DEMO_NUMBERS, type DemoOptions } from '../dev/demo/demo-options';
import { isDemoStore, resetDemoStore } from '../dev/demo/demo-store';
import type { ImportService } from '../operator/import/import.service';
import type { Progress } from '../operator/import/import-records';
import { ImportProblems } from '../operator/import/problems';
import { recordTypes } from '../operator/import/record-types';
import { FileStorage } from '../uploads/storage/file-storage';
import { summaryLines } from '../operator/import/summary';

const CHUNK = 256 * 1024;
const CREATES_STORE = { createsStore: true };
const ALL_TYPES = recordTypes(Buffer.alloc(0));
const TYPES = ALL_TYPES.map(({ name }) => name);

const service = () =>
  require('../operator/import/import.service') as typeof import('../operator/import/import.service');

export const commands: Commands = {
  import: registerImport,
  delete: registerDelete,
  reset: registerReset,
  demo: registerDemo,
};

function registerImport(command: OperatorCommand): void {
  command
    .argument('<FILE>', 'path of a file with newline-delimited JSON, or - for standard input', opened)
    .handler(async ({ app, signal }, { source, bytes }: Input) => {
      const display = new ProgressDisplay(process.stderr, (state: Progress, seconds) =>
        importProgress(state, seconds, bytes),
      );
      try {
        const summary = await app
          .get(service().ImportService)
          .run(source, { signal, progress: (state) => display.report(state) });
        display.stop();
        console.log(summaryLines(summary).join('\n') || 'The input contains no records.');
      } catch (error) {
        display.stop();
        if (signal.aborted) console.error('Interrupted: nothing was imported.');
        throw error;
      } finally {
        source.destroy();
      }
    }, CREATES_STORE);
}

function registerDelete(command: OperatorCommand): void {
  command
    .argument('<TYPE>', `record type: ${TYPES.join(', ')}`)
    .argument('<ID>', 'ID of the record; for an api_key the key, for an oauth_application the client_id')
    .option('--yes', 'skip the confirmation')
    .handler(({ app, signal }, type: string, id: string, { yes = false }: { yes?: boolean }) =>
      deleteRecord(app.get(service().ImportService), type, id, yes, signal),
    );
}

function registerReset(command: OperatorCommand): void {
  command
    .option('--yes', 'skip the confirmation')
    .handler(({ app, signal }, { yes = false }: { yes?: boolean }) => reset(app, yes, signal));
}

function registerDemo(demo: OperatorCommand): void {
  demo.argument('<FILE>', 'path of the file, or - for standard output');
  const parseCount = integerParser(0, 999_999_999, 'Use a whole number.');
  for (const [name, [fallback, what]] of Object.entries(DEMO_NUMBERS))
    demo.option(`--${name.replace('_', '-')} <N>`, what, parseCount, fallback);
  demo
    .option('--api-key <KEY>', 'API key of the first developer')
    .option('--password <PASSWORD>', 'password of the first three users')
    .action(async (file: string, options: Record<string, unknown>) => {
      const named = Object.fromEntries(
        Object.entries(options).map(([name, value]) => [name.replace(/[A-Z]/g, '_$&').toLowerCase(), value]),
      ) as Partial<DemoOptions>;
      await writeDemo(file, named);
    });
}

/** Only deletes a store with the demo's own key, and only after a confirmation that can't be typed by accident. */
async function reset(app: INestApplicationContext, yes: boolean, signal: AbortSignal): Promise<void> {
  const [settings, url] = [app.get(Settings), app.get(ServiceUrl).announced];
  if (!(await isDemoStore(settings)))
    throw new OperatorError('This is not the demo store, so nothing was deleted.');
  const question = 'This deletes every account, game and purchase of this store. Type reset to continue:';
  const without = 'Use --yes to reset the demo store without confirmation.';
  if (!yes) await confirm({ question, expected: 'reset', undone: 'Nothing was deleted.', without }, signal);
  const demo = await resetDemoStore(settings, url, app.get(FileStorage));
  console.log('The demo store was reset.');
  if (demo) console.log(`curl -H "Authorization: Bearer ${demo.api_key}" "${url}/profile/games"`);
}

async function deleteRecord(
  imports: ImportService,
  type: string,
  id: string,
  yes: boolean,
  signal: AbortSignal,
): Promise<void> {
  const found = ALL_TYPES.find(({ name }) => name === type);
  if (!found) throw new UsageError(`Unknown record type ${type}. The types are ${TYPES.join(', ')}.`);
  const isNumber = found.key === 'id';
  if (isNumber && !/^[1-9]\d{0,15}$/.test(id)) throw new UsageError(`${id} isn't a valid ID.`);
  // The question doesn't repeat an API key, because it is secret.
  const [what, nothing] =
    type === 'api_key'
      ? ['the API key', 'The API key']
      : [`${type} ${id}`, `${type[0]!.toUpperCase()}${type.slice(1).replaceAll('_', ' ')} ${id}`];
  const question = `This deletes ${what}. Type yes to continue:`;
  const without = 'Use --yes to delete without confirmation.';
  if (!yes) await confirm({ question, expected: 'yes', undone: 'Nothing was deleted.', without }, signal);
  const record = { type, [found.fields[0]!.name]: isNumber ? Number(id) : id, deleted: true };
  try {
    const summary = await imports.run(Readable.from([Buffer.from(JSON.stringify(record))]), { signal });
    console.log(summary[found.table]!.deleted ? `Deleted ${what}.` : `${nothing} doesn't exist.`);
  } catch (error) {
    if (!(error instanceof ImportProblems)) throw error;
    throw new OperatorError(error.lines.map((line) => line.replace(/^line 1: /, '')).join('\n'));
  }
}

interface Input {
  source: Readable;
  /** The size of the input, if it is known. */
  bytes?: number;
}

/** Opens the input before the store is created, so that a wrong path doesn't create one. */
function opened(file: string): Input {
  if (file === '-') return { source: process.stdin };
  try {
    const [fd, stats] = [openSync(file, 'r'), statSync(file)];
    if (stats.isDirectory()) throw new OperatorError(`${file} is a folder. Specify a file.`);
    const source = createReadStream(file, { fd, highWaterMark: CHUNK });
    return { source, bytes: stats.isFile() ? stats.size : undefined };
  } catch (error) {
    return readError(file)(error);
  }
}

async function writeDemo(file: string, options: Partial<DemoOptions>): Promise<void> {
  try {
    const records = Readable.from(toNdjson(demoRecords({ ...options, now: Date.now() })));
    // Standard output stays open.
    if (file === '-') await pipeline(records, process.stdout, { end: false });
    else await pipeline(records, createWriteStream(file));
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`Invalid options: ${error.message}.`);
    // The reader, such as `head`, closed the pipe.
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return;
    fileError(file)(error);
  }
}
