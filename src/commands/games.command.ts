import type { INestApplicationContext } from '@nestjs/common';
import { EntityManager, QueryFailedError } from 'typeorm';
import { Game } from '../games/game.entity';
import { gameNamed } from '../games/game-named';
import { commandName } from '../platform/config/environment';
import { OperatorError } from '../platform/errors/operator-error';
import { ignoringCase } from '../platform/database/ignoring-case';
import { CURRENCIES, formatMoney, minorUnitsOf } from '../platform/formats/money';
import { nextCommands } from '../dev/next-commands';
import { type Commands, parseCount, GAME, type OperatorCommand } from './operator-command';
import { printable, printRows, formatTime } from './print-table';
import { userNamed } from './user-named';

interface CreateOptions {
  user: string;
  title: string;
  slug?: string;
  price: string;
}

export const commands: Commands = { games: registerGames };

function registerGames(games: OperatorCommand): void {
  games
    .command('create')
    .description('Create a public game.')
    .requiredOption('--user <username>', 'username of the owner')
    .requiredOption('--title <TEXT>', 'title of the game')
    .option('--slug <TEXT>', 'last part of the URL; default: derived from the title')
    .option('--price <PRICE>', 'minimum price in USD, such as 4.99', '0')
    .handler(async ({ app }, options: CreateOptions) => {
      const { id, name } = await create(app, options);
      console.log(
        `Created game ${id} (${name}). To sell it, run \`${commandName()} sell --game ${name} --to me@example.com\`.`,
      );
    });

  games
    .command('set-price')
    .description('Change the minimum price of a game.')
    .argument('<GAME>', GAME[1])
    .argument('<PRICE>', 'minimum price in USD, such as 4.99, or 0 for a free game')
    .handler(async ({ app }, name: string, price: string) => {
      const { id, title, traits } = await gameNamed(app.get(EntityManager), name);
      const min_price = amountOf(price, 'USD');
      // It stays, because buyers can pay more than the minimum price.
      const sold: Game['traits'] = min_price > 0 ? ['can_be_bought'] : [];
      const change = { min_price, traits: [...new Set([...traits, ...sold])] };
      await app.get(EntityManager).update(Game, { id }, change);
      console.log(`The minimum price of ${printable(title)} is ${formatMoney(min_price, 'USD')}.`);
    });

  games
    .command('list')
    .description('List the newest games.')
    .option('--user <username>', 'only games of this owner')
    .option('--count <number>', 'number of games', parseCount, 50)
    .handler(async ({ app }, { user, count }: { user?: string; count: number }) => {
      if (user !== undefined) await userNamed(app, user);
      const rows = await app.get(EntityManager).find(Game, {
        where: user === undefined ? {} : { owner_name: ignoringCase(user) },
        order: { id: 'DESC' },
        take: count,
      });
      if (rows.length === 0) return console.log(`There are no games. ${nextCommands(user)}`);
      printRows(rows, {
        ID: (row) => row.id,
        GAME: (row) => `${row.owner_name}/${row.slug}`,
        TITLE: (row) => row.title,
        VISIBILITY: (row) => row.visibility,
        'MIN PRICE': (row) => formatMoney(row.min_price, 'USD'),
        PURCHASES: (row) => row.purchases_count,
        CREATED: (row) => formatTime(row.created_at),
      });
    });
}

async function create(
  app: INestApplicationContext,
  { user, title, slug = slugOf(title), price }: CreateOptions,
) {
  const owner = await userNamed(app, user);
  if (title.trim() === '' || [...title].length > 500)
    throw new OperatorError('A title must have 1 to 500 characters.');
  if (!/^[A-Za-z0-9_.-]{1,100}$/.test(slug))
    throw new OperatorError('Use --slug with up to 100 letters, digits, _, . and -.');
  const min_price = amountOf(price, 'USD');
  const name = `${owner.username}/${slug}`;
  const game = {
    ...{ user_id: owner.id, owner_name: owner.username, slug, title: title.trim(), min_price },
    ...{ published_at: () => 'now()', traits: min_price > 0 ? (['can_be_bought'] as const).slice() : [] },
  };
  const made = await app
    .get(EntityManager)
    .insert(Game, game)
    .catch((error: unknown) => {
      const { constraint } = (error instanceof QueryFailedError ? error.driverError : {}) as {
        constraint?: string;
      };
      if (constraint !== 'games_slug_key') throw error;
      throw new OperatorError(`The game ${printable(name)} exists already. Use --slug for another URL.`);
    });
  return { id: (made.identifiers[0] as Pick<Game, 'id'>).id, name };
}

/** `Röde Orm 2` becomes `rode-orm-2`. */
const slugOf = (title: string): string =>
  title
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 100)
    .replace(/^-+|-+$/g, '');

/** Minor units: 499 for 4.99 dollars. */
export function amountOf(price: string, currency: string): number {
  if (!CURRENCIES.includes(currency))
    throw new OperatorError(`${currency} isn't a valid currency. Use an ISO 4217 code such as USD.`);
  const unit = minorUnitsOf(currency);
  const digits = String(unit).length - 1;
  const [, whole, fraction = ''] = /^(\d{1,12})(?:\.(\d+))?$/.exec(price) ?? [];
  const amount = whole === undefined ? NaN : Number(whole) * unit + Number(fraction.padEnd(digits, '0'));
  if (!Number.isSafeInteger(amount) || fraction.length > digits)
    throw new OperatorError(
      `Invalid price "${price}". Use a number of ${currency} such as ${digits ? `4.${'9'.repeat(digits)}` : '500'}.`,
    );
  return amount;
}
