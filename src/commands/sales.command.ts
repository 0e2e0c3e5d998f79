/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the services */
import type { INestApplicationContext } from '@nestjs/common';
import { EntityManager, IsNull } from 'typeorm';
import { hashApiKey, peppersOf } from '../auth/api-key';
import { ApiKey } from '../auth/api-key.entity';
import type { Game } from '../games/game.entity';
import { gameNamed } from '../games/game-named';
import { commandName } from '../platform/config/environment';
import { OwnAddress } from '../platform/http/own-address';
import { isPseudonym } from '../users/erased-users';
import { amountOf } from './games.command';
import { userNamed } from './user-named';
import { OperatorEvents } from '../operator/tokens/operator-events';
import { type Commands, countIn, type OperatorCommand } from './operator-command';
import { OperatorError } from '../platform/config/operator-error';
import { Settings } from '../platform/config/settings';
import { readSecret } from '../platform/config/stored-secrets';
import { ask } from './terminal';
import { Database } from '../platform/database/database';
import { formatMoney } from '../platform/formats/money';
import { printable, printRows, timeIn } from './print-table';
import { ApiError } from '../platform/http/api-error';
import { GIVE, NEWEST_SALES } from '../operator/sales/sale-statements';
import { newDownloadKey } from '../purchases/new-download-key';

interface SaleOptions {
  game?: string;
  to?: string;
  price?: string;
  currency: string;
  reference?: string;
}

/** A page of sales from the API. */
const MAX_PAGE = 500;

const GAME = ['--game <GAME>', 'game as owner/slug, such as ash-beetle/brave-arcade, or its ID'] as const;
const TO = ['--to <BUYER>', 'email address or username of the buyer'] as const;

const dto = () => require('../operator/sales/sale.dto') as typeof import('../operator/sales/sale.dto');
const service = () =>
  require('../operator/sales/sales.service') as typeof import('../operator/sales/sales.service');

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
      "the checkout's unique name for the sale; a repeated reference creates no second purchase",
    )
    .handler(async ({ app, signal }, options: SaleOptions) => {
      const game = await gameOf(app, options, signal);
      const buyer = await buyerNamed(app, await buyerOf(options, signal));
      const { currency, price, reference } = options;
      if (reference !== undefined && !/^[^]{1,200}$/u.test(reference))
        throw new OperatorError('A reference has up to 200 characters.');
      const amount = price === undefined ? game.min_price : amountOf(price, currency);
      const order = { game_id: game.id, ...buyer, currency, amount, reference };
      const { purchase, download_keys } = await app
        .get(service().SalesService)
        .sell(Object.assign(new (dto().SaleRequest)(), order), {})
        .catch(explained);
      console.log(
        `Sold ${printable(game.title)} to ${printable(purchase.email)} for ${purchase.price}: purchase ${purchase.id}.`,
      );
      for (const { key } of download_keys) console.log(`Download key: ${key}`);
      console.log(await requestOf(app, game, 'purchases', buyer));
    });
}

function registerRefund(refund: OperatorCommand): void {
  refund
    .argument('[purchase]', 'ID of the purchase, from `purchases list`')
    .option('--keep-keys', 'keep the download keys valid')
    .handler(
      async ({ app, signal }, given: string | undefined, { keepKeys = false }: { keepKeys?: boolean }) => {
        const which = 'The ID of the purchase is missing.';
        const id = idIn(given ?? (await ask('ID of the purchase:', which, signal)));
        const order = { purchase_id: id, keep_keys: keepKeys };
        const { purchase } = await app
          .get(service().SalesService)
          .refund(Object.assign(new (dto().RefundRequest)(), order), {})
          .catch((error: unknown) => {
            if (error instanceof ApiError && error.statusCode === 404)
              throw new OperatorError(`Purchase ${id} doesn't exist. Nothing was changed.`);
            explained(error);
          });
        console.log(
          `Refunded ${purchase.price} to ${printable(purchase.email)} for purchase ${id}.` +
            (keepKeys ? ' Its download keys stay valid.' : ' Its download keys are revoked.'),
        );
        const game = await gameNamed(app.get(EntityManager), String([purchase.game_id].flat()[0]));
        console.log(await requestOf(app, game, 'purchases', { email: purchase.email }));
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
      const key = newDownloadKey();
      const given = { email: null, user_id: null, ...buyer };
      await app.get(Database).rows(GIVE, [key, game.id, given.email, given.user_id]);
      app.get(OperatorEvents).record('download_key.created', {}, { counts: { games: 1, keys: 1 } });
      console.log(`Created a download key of ${printable(game.title)} for ${printable(to)}: ${key}`);
      console.log(await requestOf(app, game, 'download_keys', buyer));
    });
}

function registerPurchases(purchases: OperatorCommand): void {
  purchases
    .command('list')
    .description('List the newest purchases of a game.')
    .option(...GAME)
    .option('--count <number>', 'number of purchases', countIn, 50)
    .handler(async ({ app, signal }, options: SaleOptions & { count: number }) => {
      const game = await gameOf(app, options, signal);
      const rows = await app.get(Database).rows(NEWEST_SALES, [game.id, options.count]);
      printRows(rows, {
        ID: (row) => row.id,
        TIME: (row) => timeIn(row.created_at),
        BUYER: (row) => row.email,
        PRICE: (row) => formatMoney(row.amount, row.currency),
        STATUS: (row) => row.status,
        REFERENCE: (row) => row.reference,
      });
      console.log(await requestOf(app, game, 'sales', { per_page: Math.min(options.count, MAX_PAGE) }));
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

function explained(error: unknown): never {
  throw error instanceof ApiError ? new OperatorError(`Nothing was changed: ${error.message}.`) : error;
}

function idIn(text: string): number {
  const id = Number(text);
  if (!/^[1-9]\d*$/.test(text) || !Number.isSafeInteger(id))
    throw new OperatorError(`${text} isn't a valid ID.`);
  return id;
}

/** An email address or a username. */
async function buyerNamed(
  app: INestApplicationContext,
  to: string,
): Promise<{ email: string } | { user_id: number }> {
  if (to.includes('@')) {
    if (/^[^\s@]+@[^\s@]+$/.test(to) && to.length <= 254) return { email: to };
    throw new OperatorError(`${to} isn't a valid email address.`);
  }
  const { id, username } = await userNamed(app, to);
  if (isPseudonym(username, id)) throw new OperatorError(`User ${to} doesn't exist.`);
  return { user_id: id };
}

/** A command that shows the API's response, with the key that `npm start` printed if it is the developer's. */
async function requestOf(
  app: INestApplicationContext,
  game: Game,
  path: string,
  parameters: Record<string, string | number>,
): Promise<string> {
  const [[name, value]] = Object.entries(parameters) as [[string, string | number]];
  const url = `${app.get(OwnAddress).announced}/games/${game.id}/${path}?${name}=${encodeURIComponent(value)}`;
  const key = await demoKeyOf(app, game.user_id);
  const curl = `curl -H "Authorization: Bearer ${key ?? '$GAMEWHARF_KEY'}" "${url}"`;
  return key ? curl : `GAMEWHARF_KEY=$(${commandName()} keys create --user ${game.owner_name})\n${curl}`;
}

async function demoKeyOf(app: INestApplicationContext, user_id: number): Promise<string | undefined> {
  const settings = app.get(Settings);
  const key = readSecret(settings.DATA_DIR, 'demo-api-key');
  if (key === undefined) return undefined;
  const key_hash = hashApiKey(key, peppersOf(settings)[0]!);
  const isTheirs = await app.get(EntityManager).existsBy(ApiKey, { key_hash, user_id, revoked_at: IsNull() });
  return isTheirs ? key : undefined;
}
