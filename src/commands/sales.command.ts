/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the services */
import type { INestApplicationContext } from '@nestjs/common';
import { InvalidArgumentError } from 'commander';
import type { Game } from '../games/game.entity';
import { StoreGames } from '../games/store-games.service';
import { isPseudonym } from '../auth/accounts/erased-users';
import { parseAmount } from './games.command';
import { AccountsService } from '../users/accounts.service';
import { requireAddress } from './email-address';
import {
  type Commands,
  parseCount,
  GAME_OPTION,
  type OperatorCommand,
  subcommands,
} from './operator-command';
import { OperatorError, UsageError } from '../platform/errors/operator-error';
import { prompt } from './terminal';
import { CURRENCIES } from '../platform/formats/money';
import { printRequest } from './print-request';
import { type Columns, printable, printRows, formatTime } from './print-table';
import { ApiError } from '../platform/errors/api-error';
import { InvalidValue } from '../platform/input/input-values';
import { readInteger } from '../platform/input/readers';

interface SaleOptions {
  game: string;
  to: string;
  price?: string;
  currency: string;
  reference?: string;
}

interface ListOptions {
  game?: string;
  buyer?: string;
  count: number;
  json?: boolean;
}

/** The most sales on a page of the API. */
const MAX_PAGE = 500;

const TO = {
  flags: '--to <BUYER>',
  description: 'email address or username of the buyer',
  noun: 'buyer',
  question: 'Email address or username of the buyer:',
  example: 'me@example.com',
};

const dto = () => require('../purchases/sales/sale.dto') as typeof import('../purchases/sales/sale.dto');
const service = () =>
  require('../purchases/sales/sales.service') as typeof import('../purchases/sales/sales.service');

const keys = () =>
  require('../purchases/keys/created-keys.service') as typeof import('../purchases/keys/created-keys.service');

export const commands: Commands = {
  sell: registerSell,
  refund: registerRefund,
  give: registerGive,
  purchases: subcommands({ list: registerList }),
};

function registerSell(sell: OperatorCommand): void {
  sell
    .example(
      'sell --game me/my-game --to player@example.com',
      'sell --game me/my-game --to player --price 4.49 --currency EUR --reference order-17',
    )
    .needs(GAME_OPTION)
    .needs(TO)
    .option('--price <PRICE>', "price such as 4.99; default: the game's minimum price")
    .option('--currency <CODE>', 'ISO 4217 currency code', parseCurrency, 'USD')
    .completes('--currency', CURRENCIES)
    .option(
      '--reference <TEXT>',
      "the checkout's unique ID for the sale, such as an order number; repeating it doesn't create another purchase",
    )
    .handler(async ({ app }, options: SaleOptions) => {
      const { currency, price, reference } = options;
      if (price === undefined && currency !== 'USD')
        throw new UsageError('Use --price with --currency, because the minimum price of a game is in USD.');
      const game = await app.get(StoreGames).named(options.game);
      const buyer = await buyerNamed(app, options.to);
      if (reference !== undefined && !/^[^]{1,200}$/u.test(reference))
        throw new UsageError('A reference must have 1 to 200 characters.');
      const amount = price === undefined ? game.min_price : parseAmount(price, currency);
      const order = { game_id: game.id, ...buyer, currency, amount, reference };
      const { purchase, download_keys } = await app
        .get(service().SalesService)
        .sell(Object.assign(new (dto().SaleRequest)(), order), {})
        .catch(rethrow);
      console.log(
        `Sold ${printable(game.title)} to ${printable(purchase.email)} for ${purchase.price}: purchase ${purchase.id}.`,
      );
      for (const { key, url } of download_keys) {
        console.log(`Download key: ${key}`);
        if (url !== null) console.log(`Its page: ${url}`);
      }
      await printSales(app, game, 'purchases', buyer);
    });
}

function registerRefund(refund: OperatorCommand): void {
  refund
    .argument('[PURCHASE]', 'ID of the purchase, from `purchases list`')
    .option('--keep-keys', 'keep the download keys valid')
    .handler(
      async (
        { app, signal },
        idArgument: string | undefined,
        { keepKeys = false }: { keepKeys?: boolean },
      ) => {
        const which = new UsageError('The ID of the purchase is missing.');
        const text = idArgument ?? (await prompt('ID of the purchase:', which, signal));
        const id = readInteger(text);
        if (id instanceof InvalidValue) throw new UsageError(`${text} isn't a valid ID.`);
        const order = { purchase_id: id, keep_keys: keepKeys };
        const { purchase } = await app
          .get(service().SalesService)
          .refund(Object.assign(new (dto().RefundRequest)(), order), {})
          .catch((error: unknown) => {
            if (error instanceof ApiError && error.statusCode === 404)
              throw new OperatorError(`Purchase ${id} doesn't exist. Nothing was changed.`);
            rethrow(error);
          });
        const row = await app.get(service().SalesService).find(id);
        const ofKeys = keepKeys ? ' Its download keys stay valid.' : ' Its download keys are revoked.';
        console.log(
          `Refunded ${purchase.price} to ${printable(purchase.email)} for purchase ${id}.` +
            (row?.keys.length === 0 ? ' It has no download keys.' : ofKeys),
        );
        const game = await app.get(StoreGames).named(String([purchase.game_id].flat()[0]));
        await printSales(app, game, 'purchases', { email: purchase.email });
      },
    );
}

function registerGive(give: OperatorCommand): void {
  give
    .needs(GAME_OPTION)
    .needs(TO)
    .handler(async ({ app }, options: SaleOptions) => {
      const game = await app.get(StoreGames).named(options.game);
      const { to } = options;
      const buyer = await buyerNamed(app, to);
      const key = await app.get(keys().CreatedKeysService).createFree(game.id, buyer, {});
      console.log(`Created a download key of ${printable(game.title)} for ${printable(to)}: ${key}`);
      await printSales(app, game, 'download_keys', buyer);
    });
}

function registerList(command: OperatorCommand): void {
  command
    .description('List the newest purchases of the store, a game or a buyer.')
    .option(GAME_OPTION.flags, `only purchases of this game, as owner/slug or its ID`)
    .option('--buyer <BUYER>', 'only purchases of this email address or username')
    .option('--count <NUMBER>', 'number of purchases', parseCount, 50)
    .json()
    .example('purchases list --buyer me@example.com', 'purchases list --game ash-beetle/brave-arcade --json')
    .handler(async ({ app }, options: ListOptions) => {
      const { count, json } = options;
      const game = options.game === undefined ? undefined : await app.get(StoreGames).named(options.game);
      const buyer = options.buyer === undefined ? undefined : await buyerNamed(app, options.buyer);
      const rows = await app.get(service().SalesService).newest({ game_id: game?.id, buyer, count });
      const columns: Columns<(typeof rows)[number]> = {
        ID: (row) => row.id,
        TIME: (row) => formatTime(row.created_at),
        ...(game ? {} : { GAMES: (row) => row.games }),
        BUYER: (row) => row.email,
        PRICE: ({ amount, currency }) => ({ amount, currency }),
        STATUS: (row) => row.status,
        REFERENCE: (row) => row.reference,
      };
      printRows(rows, columns, { json });
      if (game && !json && !buyer)
        await printSales(app, game, 'sales', { per_page: Math.min(count, MAX_PAGE) });
    });
}

function parseCurrency(code: string): string {
  if (!CURRENCIES.includes(code)) throw new InvalidArgumentError('Use an ISO 4217 code such as USD.');
  return code;
}

function rethrow(error: unknown): never {
  throw error instanceof ApiError ? new OperatorError(`Nothing was changed: ${error.message}.`) : error;
}

/** Finds the buyer with an email address or a username. */
async function buyerNamed(
  app: INestApplicationContext,
  to: string,
): Promise<{ email: string } | { user_id: number }> {
  if (to.includes('@')) return { email: requireAddress(to) };
  const { id, username } = await app.get(AccountsService).named(to);
  if (isPseudonym(username, id)) throw new OperatorError(`User ${to} doesn't exist.`);
  return { user_id: id };
}

/** Prints a request that the game's owner can send. */
function printSales(
  app: INestApplicationContext,
  { id, user_id, owner_name }: Game,
  list: string,
  parameters: Record<string, string | number>,
): Promise<void> {
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return printRequest(app, { id: user_id, username: owner_name }, `/games/${id}/${list}?${query.join('&')}`);
}
