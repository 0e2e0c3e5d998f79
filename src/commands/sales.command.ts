/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the services */
import type { INestApplicationContext } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { Game } from '../games/game.entity';
import { gameNamed } from '../games/game-named';
import { isPseudonym } from '../users/erased-users';
import { amountOf } from './games.command';
import { requireAddress, userNamed } from './user-named';
import { type Commands, parseCount, GAME, type OperatorCommand } from './operator-command';
import { OperatorError } from '../platform/errors/operator-error';
import { ask } from './terminal';
import { formatMoney } from '../platform/formats/money';
import { printRequest } from './print-request';
import { printable, printRows, formatTime } from './print-table';
import { ApiError } from '../platform/errors/api-error';
import { InvalidValue } from '../platform/input/given-values';
import { readInteger } from '../platform/input/readers';

interface SaleOptions {
  game?: string;
  to?: string;
  price?: string;
  currency: string;
  reference?: string;
}

/** A page of sales from the API. */
const MAX_PAGE = 500;

const TO = ['--to <BUYER>', 'email address or username of the buyer'] as const;

const dto = () => require('../purchases/sales/sale.dto') as typeof import('../purchases/sales/sale.dto');
const service = () =>
  require('../purchases/sales/sales.service') as typeof import('../purchases/sales/sales.service');

const keys = () =>
  require('../purchases/keys/created-keys.service') as typeof import('../purchases/keys/created-keys.service');

export const commands: Commands = {
  sell: registerSell,
  refund: registerRefund,
  give: registerGive,
  purchases: registerPurchases,
};

function registerSell(sell: OperatorCommand): void {
  sell
    .option(...GAME)
    .option(...TO)
    .option('--price <PRICE>', "price such as 4.99; default: the game's minimum price")
    .option('--currency <CODE>', 'ISO 4217 currency code', 'USD')
    .option(
      '--reference <TEXT>',
      "the checkout's unique ID for the sale, such as an order number; repeating it doesn't create another purchase",
    )
    .handler(async ({ app, signal }, options: SaleOptions) => {
      const game = await gameOf(app, options, signal);
      const buyer = await buyerNamed(app, await buyerOf(options, signal));
      const { currency, price, reference } = options;
      if (reference !== undefined && !/^[^]{1,200}$/u.test(reference))
        throw new OperatorError('A reference must have 1 to 200 characters.');
      const amount = price === undefined ? game.min_price : amountOf(price, currency);
      const order = { game_id: game.id, ...buyer, currency, amount, reference };
      const { purchase, download_keys } = await app
        .get(service().SalesService)
        .sell(Object.assign(new (dto().SaleRequest)(), order), {})
        .catch(rethrow);
      console.log(
        `Sold ${printable(game.title)} to ${printable(purchase.email)} for ${purchase.price}: purchase ${purchase.id}.`,
      );
      for (const { key } of download_keys) console.log(`Download key: ${key}`);
      await printSales(app, game, 'purchases', buyer);
    });
}

function registerRefund(refund: OperatorCommand): void {
  refund
    .argument('[purchase]', 'ID of the purchase, from `purchases list`')
    .option('--keep-keys', 'keep the download keys valid')
    .handler(
      async ({ app, signal }, given: string | undefined, { keepKeys = false }: { keepKeys?: boolean }) => {
        const which = 'The ID of the purchase is missing.';
        const text = given ?? (await ask('ID of the purchase:', which, signal));
        const id = readInteger(text);
        if (id instanceof InvalidValue) throw new OperatorError(`${text} isn't a valid ID.`);
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
        const game = await gameNamed(app.get(EntityManager), String([purchase.game_id].flat()[0]));
        await printSales(app, game, 'purchases', { email: purchase.email });
      },
    );
}

function registerGive(give: OperatorCommand): void {
  give
    .option(...GAME)
    .option(...TO)
    .handler(async ({ app, signal }, options: SaleOptions) => {
      const game = await gameOf(app, options, signal);
      const to = await buyerOf(options, signal);
      const buyer = await buyerNamed(app, to);
      const key = await app.get(keys().CreatedKeysService).createFree(game.id, buyer, {});
      console.log(`Created a download key of ${printable(game.title)} for ${printable(to)}: ${key}`);
      await printSales(app, game, 'download_keys', buyer);
    });
}

function registerPurchases(purchases: OperatorCommand): void {
  purchases
    .command('list')
    .description('List the newest purchases of a game.')
    .option(...GAME)
    .option('--count <number>', 'number of purchases', parseCount, 50)
    .handler(async ({ app, signal }, options: SaleOptions & { count: number }) => {
      const game = await gameOf(app, options, signal);
      const rows = await app.get(service().SalesService).newestOfGame(game.id, options.count);
      printRows(rows, {
        ID: (row) => row.id,
        TIME: (row) => formatTime(row.created_at),
        BUYER: (row) => row.email,
        PRICE: (row) => formatMoney(row.amount, row.currency),
        STATUS: (row) => row.status,
        REFERENCE: (row) => row.reference,
      });
      await printSales(app, game, 'sales', { per_page: Math.min(options.count, MAX_PAGE) });
    });
}

async function gameOf(
  app: INestApplicationContext,
  { game }: SaleOptions,
  signal: AbortSignal,
): Promise<Game> {
  const without = 'The game is missing. Use --game ash-beetle/brave-arcade.';
  return gameNamed(
    app.get(EntityManager),
    game ?? (await ask('Game, as owner/slug or ID:', without, signal)),
  );
}

const buyerOf = ({ to }: SaleOptions, signal: AbortSignal) =>
  to ??
  ask('Email address or username of the buyer:', 'The buyer is missing. Use --to me@example.com.', signal);

function rethrow(error: unknown): never {
  throw error instanceof ApiError ? new OperatorError(`Nothing was changed: ${error.message}.`) : error;
}

/** An email address or a username. */
async function buyerNamed(
  app: INestApplicationContext,
  to: string,
): Promise<{ email: string } | { user_id: number }> {
  if (to.includes('@')) return { email: requireAddress(to) };
  const { id, username } = await userNamed(app, to);
  if (isPseudonym(username, id)) throw new OperatorError(`User ${to} doesn't exist.`);
  return { user_id: id };
}

/** A request of the game's owner. */
function printSales(
  app: INestApplicationContext,
  { id, user_id, owner_name }: Game,
  list: string,
  parameters: Record<string, string | number>,
): Promise<void> {
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return printRequest(app, { id: user_id, username: owner_name }, `/games/${id}/${list}?${query.join('&')}`);
}
