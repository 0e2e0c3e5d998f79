import { addToPeriods } from '../../src/purchases/earnings/earnings';
import { Actor } from './actor';
import type { HttpResponse } from './http';
import { OPERATOR_TOKEN } from './importing';
import { sql } from './sql';

export const operator = new Actor(0, 'operator', OPERATOR_TOKEN);

/** Sells bundle 1 to user 2. */
export const sellBundle = (fields: object = {}) =>
  operator.postJson('/operator/purchases', {
    bundle_id: 1,
    user_id: 2,
    email: 'buyer@example.com',
    currency: 'USD',
    amount: 1000,
    ...fields,
  });

export const readPurchaseId = ({ status, body }: HttpResponse) => {
  expect(status).toBe(200);
  return (body as { purchase: { id: number } }).purchase.id;
};

/** Adds a day of sales to the totals that the pages read, as the service records it. */
export const addSales = (game_id: number, day: string, currency: string, purchases: number, amount: number) =>
  sql(
    addToPeriods(
      `(SELECT ${game_id} AS game_id, '${currency}' AS currency, '${day.slice(0, 10)}'::date AS day, ${purchases} AS purchases, ${amount} AS amount)`,
    ),
  );
