import { type Command, InvalidArgumentError } from 'commander';
import { EntityManager } from 'typeorm';
import { commandName } from '../platform/config/environment';
import { type CommandRunner, idIn } from './operator-command';
import { OperatorError } from '../platform/config/operator-error';
import { printTable, timeOrDash } from './print-table';
import { gameNamed } from '../games/game-named';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../operator/webhooks/announcements';
import { WebhooksService } from '../operator/webhooks/webhooks.service';

export function registerWebhookCommands(program: Command, run: CommandRunner): void {
  const webhooks = program.command('webhooks').description('Addresses that are told of sales');
  webhooks
    .command('add')
    .description(
      'Add an address, and print the secret that its messages are signed with. It is shown this once.',
    )
    .argument('<url>', 'where to, such as https://example.com/hook')
    .option('--events <events>', `which: ${WEBHOOK_EVENTS.join(', ')}; default: all`, eventsIn)
    .option(
      '--game <GAME>',
      'only sales of this game, as owner/slug, such as ash-beetle/brave-arcade, or its id',
    )
    .action(
      (url: string, { events = [...WEBHOOK_EVENTS], game }: { events?: WebhookEvent[]; game?: string }) =>
        run(async (app) => {
          const game_id = game === undefined ? null : (await gameNamed(app.get(EntityManager), game)).id;
          const { id, secret } = await app.get(WebhooksService).add(url, events, game_id);
          console.error(
            `Webhook ${id} hears of ${events.join(', ')}; \`${commandName()} webhooks remove ${id}\` ends it.`,
          );
          console.log(secret);
        }),
    );
  webhooks
    .command('list')
    .description('List the addresses, the outcome of the last attempt, and how many messages wait.')
    .action(() =>
      run(async (app) => {
        printTable([
          ['ID', 'URL', 'EVENTS', 'GAME', 'CREATED', 'LAST TRIED', 'OUTCOME', 'WAITING', 'ENDED'],
          ...(await app.get(WebhooksService).list()).map((row) => [
            String(row.id),
            row.url.replace(/\?.*/, '?...'),
            row.events.join(' '),
            String(row.game_id ?? 'all'),
            timeOrDash(row.created_at),
            timeOrDash(row.last_at),
            row.last_outcome ?? '-',
            String(row.waiting),
            timeOrDash(row.ended_at),
          ]),
        ]);
      }),
    );
  webhooks
    .command('remove')
    .description('Remove an address, and the messages that wait for it.')
    .argument('<id>', 'as `webhooks list` shows it', idIn)
    .action((id: number) =>
      run(async (app) => {
        if (!(await app.get(WebhooksService).remove(id)))
          throw new OperatorError(`There is no webhook ${id}.`);
        console.log(`Webhook ${id} is removed.`);
      }),
    );
  webhooks
    .command('test')
    .description('Send a message of the type webhook.test now, and print the status of the answer.')
    .argument('<id>', 'as `webhooks list` shows it', idIn)
    .action((id: number) =>
      run(async (app) => console.log(`Answered ${await app.get(WebhooksService).test(id)}.`)),
    );
}

function eventsIn(text: string): WebhookEvent[] {
  const given = text.split(/[\s,]+/).filter((event) => event !== '');
  const events = WEBHOOK_EVENTS.filter((event) => given.includes(event));
  if (given.length === 0 || events.length < new Set(given).size)
    throw new InvalidArgumentError(`The events are ${WEBHOOK_EVENTS.join(', ')}.`);
  return events;
}
