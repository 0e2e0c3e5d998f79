import { type Commands, parseId, type OperatorCommand, subcommands } from './operator-command';
import { OperatorError } from '../platform/errors/operator-error';
import { printRows, printTable } from './print-table';
import { ProgressDisplay } from './progress';
import { CollectionsService } from '../collections/collections.service';
import { type Resanitized, ResanitizeService } from '../collections/resanitize.service';

export const commands: Commands = {
  collections: subcommands({ show: registerShow, resanitize: registerResanitize }),
};

function registerShow(command: OperatorCommand): void {
  command
    .description('Show a collection, its editors, and whether it is on their profiles.')
    .argument('<ID>', 'ID of the collection', parseId)
    .handler(async ({ app }, id: number) => {
      const found = await app.get(CollectionsService).withEditors(id);
      if (!found) throw new OperatorError(`Collection ${id} doesn't exist.`);
      const { collection, editors } = found;
      printTable([
        ['title', collection.title],
        ['url', collection.url],
        ['games', String(collection.games_count)],
        ['private', collection.private ? 'yes' : 'no'],
        ['layout', collection.layout],
        ['created', collection.created_at],
        ['updated', collection.updated_at],
        ['description', collection.description ?? '-'],
      ]);
      console.log();
      printRows(editors, {
        USER: (editor) => editor.username,
        ROLE: (editor) => editor.role,
        'ON PROFILE': (editor) => editor.on_profile,
      });
    });
}

function registerResanitize(command: OperatorCommand): void {
  command
    .description('Sanitize stored descriptions and blurbs again with the HTML rules of this version.')
    .handler(async ({ app, signal }) => {
      const progress = new ProgressDisplay(process.stderr, (done: Resanitized) => ({
        text: formatSummary(done),
        share: undefined,
      }));
      const done = await app
        .get(ResanitizeService)
        .run((state) => progress.report(state), signal)
        .finally(() => progress.stop());
      console.log(formatSummary(done));
      if (done.too_long.length > 0)
        throw new OperatorError(
          [
            'These texts are unchanged because they would exceed the maximum length:',
            ...done.too_long.map(({ collection_id, game_id }) =>
              game_id === 0
                ? `  the description of collection ${collection_id}`
                : `  the blurb of game ${game_id} in collection ${collection_id}`,
            ),
          ].join('\n'),
        );
    });
}

const formatSummary = ({ checked, changed }: Resanitized): string =>
  `${checked.toLocaleString('en-US')} texts checked, ${changed.toLocaleString('en-US')} changed.`;
