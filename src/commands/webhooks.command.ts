import { commandName } from '../platform/config/environment';
import { type Commands, parseId, type OperatorCommand, subcommands } from './operator-command';
import { OperatorError, UsageError } from '../platform/errors/operator-error';
import { type Columns, printRows, formatTime } from './print-table';
import { Events } from '../events/events';
import { StoreGames } from '../games/store-games.service';
import { WebhookDeliveries } from '../operator/webhooks/webhook-deliveries.service';
import { WebhooksService } from '../operator/webhooks/webhooks.service';

export const commands: Commands = {
  webhooks: subcommands({
    add: registerAdd,
    list: registerList,
    remove: registerRemove,
    enable: registerEnable,
    test: registerTest,
  }),
};

function registerAdd(command: OperatorCommand): void {
  command
    .description('Add a webhook and print its signing secret. The secret is shown only once.')
    .example('webhooks add https://example.com/hook --events purchase.completed')
    .argument('<URL>', 'URL of the receiver, such as https://example.com/hook')
    .option(
      '--events <EVENTS>',
      'events, separated by commas, such as purchase.completed,purchase.refunded; default: all about games',
    )
    .option(
      '--game <GAME>',
      'only purchases of this game, as owner/slug, such as ash-beetle/brave-arcade, or its ID',
    )
    .handler(async ({ app }, url: string, { events: list, game }: { events?: string; game?: string }) => {
      const events = parseEvents(list, app.get(Events));
      const game_id = game === undefined ? null : (await app.get(StoreGames).named(game)).id;
      const { id, secret } = await app.get(WebhooksService).add({ url, events, game_id });
      console.error(
        `Webhook ${id} is subscribed to ${events.join(', ')}. To remove it, run \`${commandName()} webhooks remove ${id}\`.`,
      );
      console.log(secret);
    });
}

function registerList(command: OperatorCommand): void {
  command
    .description(
      'List the webhooks of the store, and then those of users, with the result of the last attempt and the number of pending messages.',
    )
    .json()
    .handler(async ({ app }, { json }: { json?: boolean }) => {
      const rows = await app.get(WebhooksService).list();
      const columns: Columns<(typeof rows)[number]> = {
        ID: (row) => row.id,
        URL: (row) => row.url.replace(/\?.*/, '?...'),
        USER: (row) => row.username,
        EVENTS: (row) => row.events,
        GAME: (row) => row.game_id || 'all',
        CREATED: (row) => formatTime(row.created_at),
        'LAST ATTEMPT': (row) => formatTime(row.last_at),
        RESULT: (row) => row.last_outcome,
        PENDING: (row) => row.waiting,
        DISABLED: (row) => formatTime(row.ended_at),
      };
      printRows(rows, columns, { json });
    });
}

function registerRemove(command: OperatorCommand): void {
  command
    .description('Remove a webhook, of the store or of a user, and its pending messages.')
    .argument('[ID]', 'ID of the webhook, from `webhooks list`', parseId)
    .option('--all', 'remove all webhooks instead, for example from a copy of a live store')
    .handler(async ({ app }, id: number | undefined, { all = false }: { all?: boolean }) => {
      if (all === (id !== undefined)) throw new UsageError('Specify either an ID or --all.');
      if (id === undefined) {
        const removed = await app.get(WebhooksService).removeAll();
        return console.log(`Removed ${removed} webhook${removed === 1 ? '' : 's'}.`);
      }
      if (!(await app.get(WebhooksService).remove(id)))
        throw new OperatorError(`Webhook ${id} doesn't exist.`);
      console.log(`Removed webhook ${id}.`);
    });
}

function registerEnable(command: OperatorCommand): void {
  command
    .description('Re-enable a webhook that was disabled because its receiver responded with 410 Gone.')
    .argument('<ID>', 'ID of the webhook, from `webhooks list`', parseId)
    .handler(async ({ app }, id: number) => {
      if (!(await app.get(WebhooksService).enable(id)))
        throw new OperatorError(`Webhook ${id} doesn't exist or isn't disabled.`);
      console.log(`Enabled webhook ${id}.`);
    });
}

function registerTest(command: OperatorCommand): void {
  command
    .description('Send a webhook.test message and print the status of the response.')
    .argument('<ID>', 'ID of the webhook, from `webhooks list`', parseId)
    .handler(async ({ app }, id: number) => {
      const webhook = await app.get(WebhooksService).find(id);
      if (!webhook) throw new OperatorError(`Webhook ${id} doesn't exist.`);
      const { status } = await app.get(WebhookDeliveries).test(webhook);
      if (typeof status === 'string') throw new OperatorError(`No response: ${status}.`);
      console.log(`The receiver responded with ${status}.`);
    });
}

/** The names in a list; without a list, those that a webhook for all events receives. */
function parseEvents(list: string | undefined, known: Events): string[] {
  if (list === undefined) return known.forEditors.map(({ name }) => name);
  const requested = list.split(/[\s,]+/).filter((name) => name !== '');
  const names = known.all.map(({ name }) => name).filter((name) => requested.includes(name));
  if (requested.length === 0 || names.length < new Set(requested).size)
    throw new UsageError(`Invalid --events. The events are ${known.all.map(({ name }) => name).join(', ')}.`);
  return names;
}
