import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal, Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import { commandName } from '../platform/config/environment';
import { settingsOfThisProcess } from '../process-settings';
import { OperatorError } from '../platform/errors/operator-error';
import type { Settings } from '../platform/config/settings';
import { readSecret } from '../platform/config/stored-secrets';
import type { Commands } from './operator-command';
import { fileError, readError, toStandardOutput } from './input-output';
import { backUp } from '../platform/database/backup/backup';
import { BackupReader } from '../platform/database/backup/backup-file';
import { restore } from '../platform/database/backup/restore';
import { migrate } from '../platform/database/migrate';
import { requireStore } from '../dev/open-database';
import { countStoredFiles } from '../uploads/stored-files';
import { EXIT_INTERRUPTED, say, withDatabase } from './with-database';

// Secrets that are generated on this machine if no setting contains them. A backup is useless without them.
const SECRET_FILES = ['api-key-pepper', 'demo-api-key', 'demo-password'];

export const commands: Commands = {
  migrate: registerMigrate,
  backup: registerBackup,
  restore: registerRestore,
};

function registerMigrate(command: Command): void {
  command.action(() =>
    withDatabase(async (database, signal) => {
      // A migration doesn't observe the signal. Its transaction ends with its connection.
      signal.addEventListener(
        'abort',
        () => void database.stop().finally(() => process.exit(EXIT_INTERRUPTED)),
      );
      const done = await migrate(database.settings, say);
      console.log(
        done.length === 0 ? 'The schema is up to date.' : done.map((name) => `ran ${name}`).join('\n'),
      );
    }),
  );
}

function registerBackup(command: Command): void {
  command
    .argument(
      '<FILE>',
      'path of the backup, or - for standard output; contains secrets, so only its owner can read it',
    )
    .option('--overwrite', 'replace an existing file')
    .action((file: string, { overwrite = false }: { overwrite?: boolean }) => {
      if (file !== '-' && !overwrite && existsSync(file))
        throw new OperatorError(`${file} already exists. Use --overwrite to replace it.`);
      requireStore(settingsOfThisProcess());
      const toOutput = file === '-';
      if (toOutput && process.stdout.isTTY)
        throw new OperatorError('Standard output is a terminal. Redirect it to a file or a program.');
      return withDatabase(async ({ settings, isEmbedded }, signal) => {
        const write = (target: Writable) =>
          backUp(settings, isEmbedded ? readSecrets(settings.DATA_DIR) : {}, target, signal);
        const rows = toOutput
          ? await toStandardOutput(() => write(process.stdout))
          : await intoFile(file, write);
        const counts = Object.values(rows);
        const total = `${counts.reduce((sum, one) => sum + one, 0)} rows from ${counts.length} tables`;
        const print = toOutput ? say : console.log;
        print(`Backed up ${total}${toOutput ? '' : ` to ${file}`}.`);
        // A store of an early version has no uploads.
        if (rows.uploads) await reportGameFiles(settings, 'Copy that folder, too.', print);
      });
    });
}

function registerRestore(command: Command): void {
  command
    .argument('<FILE>', 'path of the backup, or - for standard input')
    .option('--replace', 'delete the existing store first')
    .action((file: string, { replace = false }: { replace?: boolean }) =>
      withDatabase(async ({ settings, isEmbedded, hasJoined }, signal) => {
        // The service may have no connection at the moment, which restore would reject.
        if (hasJoined)
          throw new OperatorError('Another process, such as the service, uses the store. Stop it first.');
        const source = file === '-' ? process.stdin : Readable.from(readContents(file));
        addAbortSignal(signal, source);
        const API_KEY_PEPPER = settingsOfThisProcess().API_KEY_PEPPER;
        try {
          const { created_at, secrets, webhooks } = await restore(
            { ...settings, API_KEY_PEPPER: isEmbedded ? API_KEY_PEPPER : settings.API_KEY_PEPPER },
            new BackupReader(source),
            { replace, say, signal },
          );
          if (isEmbedded) writeSecrets(settings.DATA_DIR, secrets);
          console.log(`Restored the store as of ${created_at}.`);
          await reportGameFiles(
            settings,
            'Copy the files of the original store to that folder.',
            console.log,
          );
          if (webhooks > 0)
            console.log(
              `It has ${webhooks} webhook${webhooks === 1 ? '' : 's'}. If this is a copy of a live store, remove ` +
                `${webhooks === 1 ? 'it' : 'them'} before you start the service: \`${commandName()} webhooks remove --all\`.`,
            );
        } finally {
          source.destroy();
        }
      }),
    );
}

/** Backups contain the rows of uploads and builds without their files. Files in a bucket stay there. */
async function reportGameFiles(
  settings: Settings,
  advice: string,
  print: (line: string) => void,
): Promise<void> {
  const { FILES_DIR } = settings;
  if (FILES_DIR === undefined) return;
  const files = await countStoredFiles(settings);
  if (files > 0)
    print(
      `${files} game file${files === 1 ? '' : 's'} in ${FILES_DIR} ${files === 1 ? 'is' : 'are'} not included. ${advice}`,
    );
}

/** The file gets its name only when it is complete. */
async function intoFile<T>(file: string, write: (target: Writable) => Promise<T>): Promise<T> {
  // The random name can't be guessed, and `wx` neither follows a link nor opens another user's file.
  const unfinished = `${file}.${randomBytes(8).toString('hex')}.unfinished`;
  const withReason = fileError(file);
  const handle = await open(unfinished, 'wx', 0o600).catch(withReason);
  try {
    const target = new Writable({
      write: (chunk: Buffer, _encoding, done) =>
        void handle
          .appendFile(chunk)
          .catch(withReason)
          .then(() => done(), done),
    });
    const written = await write(target);
    await handle.close();
    await rename(unfinished, file).catch(withReason);
    return written;
  } catch (error) {
    await handle.close();
    await rm(unfinished, { force: true });
    throw error;
  }
}

async function* readContents(file: string): AsyncGenerator<Buffer> {
  try {
    yield* (await open(file)).createReadStream() as AsyncIterable<Buffer>;
  } catch (error) {
    readError(file)(error);
  }
}

function readSecrets(folder: string): Record<string, string> {
  const found = SECRET_FILES.flatMap((name) => {
    const secret = readSecret(folder, name);
    return secret === undefined ? [] : [[name, secret]];
  });
  return Object.fromEntries(found) as Record<string, string>;
}

function writeSecrets(folder: string, secrets: Record<string, string>): void {
  for (const name of SECRET_FILES)
    if (secrets[name]) writeFileSync(join(folder, name), `${secrets[name]}\n`, { mode: 0o600 });
}
