import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { StoreGames } from '../games/store-games.service';
import { OperatorError, UsageError } from '../platform/errors/operator-error';
import { BuildPruning, type PrunedBuild } from '../uploads/build-pruning.service';
import { BuildSignatures } from '../uploads/build-signatures.service';
import { FilesService } from '../uploads/files.service';
import { PLATFORMS, type Upload } from '../uploads/upload.entity';
import { readError } from './input-output';
import {
  type Commands,
  type Context,
  GAME_OPTION,
  parseCount,
  parseId,
  type OperatorCommand,
  subcommands,
} from './operator-command';
import { type Columns, printable, printRows, formatTime } from './print-table';
import { ProgressDisplay } from './progress';
import { confirm } from './terminal';

interface PutOptions {
  game: string;
  channel?: string;
  userVersion?: string;
  name?: string;
  platform: string[];
  demo?: true;
}

export const commands: Commands = {
  files: subcommands({
    put: registerPut,
    list: registerList,
    rm: registerRemove,
    sign: registerSign,
    prune: registerPrune,
  }),
};

function registerPut(command: OperatorCommand): void {
  command
    .description('Store a file and list it as an upload or as a new build of a channel.')
    .example(
      'files put game.zip --game me/my-game --platform windows',
      'files put game.zip --game me/my-game --channel windows --user-version 1.2.0',
    )
    .argument('<FILE>', 'path of the file')
    .needs(GAME_OPTION)
    .option('--channel <NAME>', 'channel that gets the file as a new build', parseName)
    .option('--user-version <VERSION>', 'version of the build, such as 1.2.0', parseName)
    .addOption(
      new Option('--name <TEXT>', 'name to show in place of the file name').conflicts([
        'channel',
        'userVersion',
      ]),
    )
    .addOption(
      new Option('--platform <PLATFORM>', `platform of the file (repeatable): ${PLATFORMS.join(', ')}`)
        .argParser(parsePlatform)
        .default([], 'none'),
    )
    .completes('--platform', PLATFORMS)
    .option('--demo', 'let everyone download the file')
    .handler(put);
}

async function put({ app, signal }: Context, path: string, options: PutOptions): Promise<void> {
  const { channel, userVersion, name = null, platform, demo } = options;
  if (userVersion !== undefined && channel === undefined)
    throw new UsageError('--user-version needs --channel.');
  const game = await app.get(StoreGames).named(options.game);
  const size = await readSize(path);
  const progress = new ProgressDisplay(process.stderr, (bytes: number) => {
    const share = size === 0 ? 1 : bytes / size;
    return { share, text: `${Math.floor(share * 100)}% of ${size.toLocaleString('en-US')} bytes` };
  });
  const file = {
    game_id: game.id,
    filename: basename(path),
    size,
    content: createReadStream(path, { highWaterMark: 256 * 1024 }),
    traits: [...platform.map((one) => `p_${one}`), ...(demo ? ['demo'] : [])] as Upload['traits'],
    display_name: name,
    channel_name: channel,
    user_version: userVersion,
  };
  const upload = await app
    .get(FilesService)
    .put(file, signal, (bytes) => progress.report(bytes))
    .finally(() => progress.stop());
  console.log(
    `Stored upload ${upload.id} of ${printable(game.title)}: ${printable(upload.filename)}, ${size.toLocaleString('en-US')} bytes.`,
  );
  if (channel === undefined) return;
  const problem = await app
    .get(BuildSignatures)
    .signNewest({ game_id: game.id, channel_name: channel }, signal);
  if (problem !== undefined) console.error(withoutSignature('The build', problem));
}

function registerList(command: OperatorCommand): void {
  command
    .description("List a game's uploads.")
    .needs(GAME_OPTION)
    .json()
    .handler(async ({ app }, { game: name, json }: { game: string; json?: boolean }) => {
      const game = await app.get(StoreGames).named(name);
      const columns: Columns<Upload> = {
        ID: (upload) => upload.id,
        FILE: (upload) => upload.filename,
        TRAITS: (upload) => upload.traits,
        SOURCE: describeSource,
        BYTES: (upload) => upload.size,
        UPDATED: (upload) => formatTime(upload.updated_at),
      };
      printRows(await app.get(FilesService).list(game.id), columns, { json });
    });
}

function registerRemove(command: OperatorCommand): void {
  command
    .description('Delete an upload and its file. Builds of a channel are kept.')
    .argument('<ID>', 'ID of the upload, from `files list`', parseId)
    .option('--yes', 'skip the confirmation')
    .handler(async ({ app, signal }, id: number, { yes = false }: { yes?: boolean }) => {
      const question = `This deletes upload ${id} and its file. Type yes to continue:`;
      const without = 'Use --yes to delete without confirmation.';
      if (!yes) await confirm({ question, expected: 'yes', undone: 'Nothing was deleted.', without }, signal);
      if (!(await app.get(FilesService).remove(id))) throw new OperatorError(`Upload ${id} doesn't exist.`);
      console.log(`Deleted upload ${id}.`);
    });
}

function registerSign(command: OperatorCommand): void {
  command
    .description('Compute the missing signatures of zip archives, from which launchers update a game.')
    .option('--game <GAME>', 'only builds of this game, as owner/slug or its ID')
    .handler(async ({ app, signal }, { game: name }: { game?: string }) => {
      const signatures = app.get(BuildSignatures);
      const game = name === undefined ? undefined : await app.get(StoreGames).named(name);
      let signed = 0;
      for await (const build of signatures.unsigned(game?.id)) {
        signal.throwIfAborted();
        const problem = await signatures.sign(build, signal);
        if (problem === undefined) signed++;
        else console.error(withoutSignature(`Build ${build.id}`, problem));
      }
      console.log(`Signed ${formatBuildCount(signed)}.`);
    });
}

function registerPrune(command: OperatorCommand): void {
  command
    .description('Delete the files of old builds. Their records are kept.')
    .example('files prune --keep 5 --dry-run')
    .needs(
      {
        flags: '--keep <NUMBER>',
        description: 'number of the newest builds of each channel that keep their files',
        noun: 'number of builds to keep',
        question: 'Builds to keep in each channel:',
        example: '5',
      },
      parseCount,
    )
    .option('--dry-run', 'list the builds without deleting anything')
    .handler(async ({ app, signal }, { keep, dryRun }: { keep: number; dryRun?: true }) => {
      const pruning = app.get(BuildPruning);
      let [builds, bytes] = [0, 0];
      for await (const build of pruning.prunable(keep)) {
        signal.throwIfAborted();
        if (!dryRun && !(await pruning.prune(build))) continue;
        builds++;
        bytes += build.bytes;
        console.log(describePruned(build));
      }
      const verb = dryRun ? 'Would delete' : 'Deleted';
      console.log(
        `${verb} the files of ${formatBuildCount(builds)}: ${bytes.toLocaleString('en-US')} bytes.`,
      );
    });
}

const withoutSignature = (build: string, problem: string) =>
  `${build} has no signature, so launchers can install it, but not update to it: ${printable(problem)}`;

const formatBuildCount = (count: number) =>
  count === 1 ? '1 build' : `${count.toLocaleString('en-US')} builds`;

const describePruned = ({ id, game, channel_name, version, user_version, bytes }: PrunedBuild) =>
  `${id}  ${game}:${printable(channel_name)}  version ${version}${user_version === null ? '' : ` (${printable(user_version)})`}  ${bytes.toLocaleString('en-US')} bytes`;

const describeSource = ({ channel_name, external_url, file_url, file_key }: Upload) =>
  channel_name === null ? (external_url ?? file_url ?? file_key!) : `channel ${channel_name}`;

async function readSize(path: string): Promise<number> {
  const found = await stat(path).catch(readError(path));
  if (!found.isFile()) throw new OperatorError(`${path} isn't a file.`);
  return found.size;
}

function parseName(text: string): string {
  if (!/^[^]{1,200}$/u.test(text)) throw new InvalidArgumentError('Use 1 to 200 characters.');
  return text;
}

function parsePlatform(text: string, previous: string[]): string[] {
  if (!PLATFORMS.some((one) => one === text))
    throw new InvalidArgumentError(`Use one of ${PLATFORMS.join(', ')}.`);
  return [...new Set([...previous, text])];
}
