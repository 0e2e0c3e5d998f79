import type { Command } from 'commander';
import { type CommandRunner, idIn } from './operator-command';
import { OperatorError } from '../platform/config/operator-error';
import { printTable } from './print-table';
import { CollectionsService } from '../collections/collections.service';
import { type ResanitiseProgress, ResanitiseService } from '../collections/resanitise.service';

const SECOND = 1000;

export function registerCollectionCommands(program: Command, run: CommandRunner): void {
  const collections = program.command('collections').description('Collections of games');
  collections
    .command('show')
    .description('Show a collection, who may edit it, and on whose profile it is.')
    .argument('<ID>', 'the id of the collection', idIn)
    .action((id: number) =>
      run(async (app) => {
        const found = await app.get(CollectionsService).withEditors(id);
        if (!found) throw new OperatorError(`There is no collection ${id}.`);
        const { collection, editors } = found;
        printTable([
          ['title', collection.title],
          ['address', collection.url],
          ['games', String(collection.games_count)],
          ['private', collection.private ? 'yes' : 'no'],
          ['layout', collection.layout],
          ['created', collection.created_at],
          ['updated', collection.updated_at],
          ['description', collection.description ?? '-'],
        ]);
        console.log();
        printTable([
          ['USER', 'ROLE', 'ON PROFILE'],
          ...editors.map(({ username, role, on_profile }) => [username, role, on_profile ? 'yes' : 'no']),
        ]);
      }),
    );
  collections
    .command('resanitise')
    .description('Bring stored descriptions and blurbs to the list of allowed HTML of this version.')
    .action(() =>
      run(async (app, signal) => {
        let shown = Date.now();
        const done = await app.get(ResanitiseService).run((progress) => {
          if (Date.now() - shown < 2 * SECOND) return;
          shown = Date.now();
          console.error(summary(progress));
        }, signal);
        console.log(summary(done));
        if (done.too_long.length > 0)
          throw new OperatorError(
            [
              'These would be longer than is allowed, and are unchanged:',
              ...done.too_long.map(({ collection_id, game_id }) =>
                game_id === null
                  ? `  the description of collection ${collection_id}`
                  : `  the blurb of game ${game_id} in collection ${collection_id}`,
              ),
            ].join('\n'),
          );
      }),
    );
}

const summary = ({ looked_at, changed }: ResanitiseProgress) =>
  `${looked_at.toLocaleString('en-US')} texts looked at, ${changed.toLocaleString('en-US')} changed.`;
