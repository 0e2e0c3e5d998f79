import type { INestApplicationContext } from '@nestjs/common';
import { MAX_SLUG_CHARACTERS, SLUG, slugify } from '../games/slug';
import { StoreGames } from '../games/store-games.service';
import { commandName } from '../platform/config/environment';
import { UsageError } from '../platform/errors/operator-error';
import { formatMoney, minorUnits, parseMoney } from '../platform/formats/money';
import { nextCommands } from '../dev/next-commands';
import {
  type Commands,
  parseCount,
  GAME_HELP,
  type OperatorCommand,
  userOption,
  subcommands,
} from './operator-command';
import { type Columns, printable, printRows, formatTime } from './print-table';
import { AccountsService } from '../users/accounts.service';

interface CreateOptions {
  user: string;
  title: string;
  slug?: string;
  price: string;
}

export const commands: Commands = {
  games: subcommands({ create: registerCreate, 'set-price': registerSetPrice, list: registerList }),
};

function registerCreate(command: OperatorCommand): void {
  command
    .description('Create a public game.')
    .example('games create --user me --title "My game" --price 4.99')
    .needs(userOption('username of the owner'))
    .needs({
      flags: '--title <TEXT>',
      description: 'title of the game',
      noun: 'title',
      question: 'Title:',
      example: '"My game"',
    })
    .option('--slug <TEXT>', 'last part of the URL; default: derived from the title')
    .option('--price <PRICE>', 'minimum price in USD, such as 4.99', '0')
    .handler(async ({ app }, options: CreateOptions) => {
      const { id, name } = await create(app, options);
      console.log(
        `Created game ${id} (${name}). To sell it, run \`${commandName()} sell --game ${name} --to me@example.com\`.`,
      );
    });
}

function registerSetPrice(command: OperatorCommand): void {
  command
    .description('Change the minimum price of a game.')
    .argument('<GAME>', GAME_HELP)
    .argument('<PRICE>', 'minimum price in USD, such as 4.99, or 0 for a free game')
    .handler(async ({ app }, name: string, price: string) => {
      const game = await app.get(StoreGames).named(name);
      const min_price = parseAmount(price, 'USD');
      await app.get(StoreGames).setPrice(game, min_price);
      console.log(`The minimum price of ${printable(game.title)} is ${formatMoney(min_price, 'USD')}.`);
    });
}

function registerList(command: OperatorCommand): void {
  command
    .description('List the newest games.')
    .option('--user <USERNAME>', 'only games of this owner')
    .option('--count <NUMBER>', 'number of games', parseCount, 50)
    .json()
    .handler(async ({ app }, { user, count, json }: { user?: string; count: number; json?: boolean }) => {
      if (user !== undefined) await app.get(AccountsService).named(user);
      const rows = await app.get(StoreGames).newest(user, count);
      if (rows.length === 0 && !json) return console.log(`There are no games. ${nextCommands(user)}`);
      const columns: Columns<(typeof rows)[number]> = {
        ID: (row) => row.id,
        GAME: (row) => `${row.owner_name}/${row.slug}`,
        TITLE: (row) => row.title,
        VISIBILITY: (row) => row.visibility,
        'MIN PRICE': (row) => ({ amount: row.min_price, currency: 'USD' }),
        PURCHASES: (row) => row.purchases_count,
        CREATED: (row) => formatTime(row.created_at),
      };
      printRows(rows, columns, { json });
    });
}

async function create(
  app: INestApplicationContext,
  { user, title, slug = slugify(title), price }: CreateOptions,
) {
  const owner = await app.get(AccountsService).named(user);
  if (title.trim() === '' || [...title].length > 500)
    throw new UsageError('A title must have 1 to 500 characters.');
  if (!SLUG.test(slug) || slug.length > MAX_SLUG_CHARACTERS)
    throw new UsageError('Use --slug with up to 100 letters, digits, _, . and -.');
  const min_price = parseAmount(price, 'USD');
  const name = `${owner.username}/${slug}`;
  const game = { user_id: owner.id, owner_name: owner.username, slug, title: title.trim(), min_price };
  return { id: await app.get(StoreGames).create(game), name };
}

/** Returns minor units: 499 for 4.99 dollars. */
export function parseAmount(price: string, currency: string): number {
  const amount = parseMoney(price, currency);
  if (amount !== undefined) return amount;
  const digits = String(minorUnits(currency)).length - 1;
  throw new UsageError(
    `Invalid price "${price}". Use a number of ${currency} such as ${digits ? `4.${'9'.repeat(digits)}` : '500'}.`,
  );
}
