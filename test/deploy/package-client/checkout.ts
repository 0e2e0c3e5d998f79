/**
 * A checkout in TypeScript. The test next to this folder checks this file against the types of the packed package, and
 * runs it: `node checkout.js ADDRESS OPERATOR_TOKEN`.
 */
import { createOperatorClient, type components } from 'gamewharf/operator';

const [baseUrl, token] = process.argv.slice(2);
const store = createOperatorClient({ baseUrl, headers: { authorization: `Bearer ${token}` } });

async function main(): Promise<void> {
  const { data } = await store.POST('/operator/purchases', {
    body: { game_id: 1, email: 'me@example.com', currency: 'USD', amount: 499, reference: 'order-1' },
  });
  if (!data) throw new Error('no sale');
  const { purchase, download_keys }: components['schemas']['SaleResponse'] = data;
  // @ts-expect-error There is no such field.
  void purchase.amount;
  const refund = await store.POST('/operator/purchases/{purchase_id}/refund', {
    params: { path: { purchase_id: purchase.id } },
    body: { keep_keys: false },
  });
  // @ts-expect-error A sale needs an amount.
  void (() => store.POST('/operator/purchases', { body: { game_id: 1, currency: 'USD' } }));
  const status = refund.data?.purchase.status;
  console.log(JSON.stringify({ reference: purchase.reference, keys: download_keys.length, status }));
}

void main();
