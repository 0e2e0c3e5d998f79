import { sleep, until } from '../../../test/support/time';
import { ask, keptConnections } from '../ask';
import { query } from '../postgres';
import { type Scenario, violated } from '../scenario';
import { GAME } from '../store';
import { WebhookReceiver } from '../webhook-receiver';

const SELLERS = 4;
const PATIENCE = 5000;
/** A claim lasts 20 s, and a message that failed twice is retried after a minute. */
const LAST_ATTEMPTS = 150_000;

export const webhooksKilled: Scenario = {
  name: 'webhooks-killed',
  fault: 'the service killed (kill -9) while it sends sales to a webhook whose receiver sometimes fails',
  promise: 'every sale and refund is sent at least once, as it is stored, and signed',
  control: 'a message is deleted when it is sent',
  async run({ lab, guarded, quick }) {
    const kills = quick ? 4 : 20;
    const { postgres, service } = await lab.started({ without: guarded ? undefined : 'outbox' });
    const receiver = await WebhookReceiver.open();
    let over = false;
    try {
      receiver.secret = (await lab.command(postgres.url, 'webhooks', 'add', receiver.url)).output.trim();
      const post = async (
        path: string,
        form: Record<string, string>,
        agent: ReturnType<typeof keptConnections>,
      ) => {
        for (;;) {
          const question = {
            method: 'POST' as const,
            key: lab.operator_token,
            form,
            agent,
            timeout: PATIENCE,
          };
          const response = await ask(`${service.url}${path}`, question).catch(() => undefined);
          if (response?.status === 200) return JSON.parse(response.body) as { purchase: { id: number } };
          if (response && response.status !== 503) throw new Error(`${response.status} ${response.body}`);
          await sleep(100);
        }
      };
      const sell = async (seller: number) => {
        const agent = keptConnections(1);
        for (let n = 0; !over; n++) {
          const sale = { game_id: String(GAME), email: 'somebody@example.com', currency: 'USD' };
          const reference = `${seller}-${n}`;
          const { purchase } = await post(
            '/operator/purchases',
            { ...sale, amount: String(n), reference },
            agent,
          );
          if (n % 4 === 0) await post(`/operator/purchases/${purchase.id}/refund`, {}, agent);
          await sleep(100);
        }
        agent.destroy();
      };
      const selling = Promise.all(Array.from({ length: SELLERS }, (_, seller) => sell(seller)));
      for (let i = 0; i < kills; i++) {
        await sleep(500 + Math.random() * 1000);
        await until(() => receiver.open > 0, 30_000);
        await service.kill();
        await service.start();
      }
      over = true;
      await selling;
      receiver.failing = false;
      const waiting = () => query(postgres.url, 'SELECT FROM webhook_deliveries LIMIT 1');
      await until(async () => (await waiting()).length === 0, LAST_ATTEMPTS);
      await until(() => receiver.open === 0, 15_000);
      const events = await query<{ event: string; data: string }>(
        postgres.url,
        `SELECT event, json_build_object('id', id, 'amount', amount, 'reference', reference)::text AS data
         FROM purchases JOIN purchase_references ON purchase_id = id,
           LATERAL unnest(CASE status WHEN 'refunded' THEN '{completed,refunded}' ELSE '{completed}' END::text[]) event`,
      );
      const { lost, wrong } = receiver.compare(events);
      return {
        happened: `${kills} kills, ${events.length} events, ${receiver.total} messages, of which ${receiver.failures} got an error response: ${lost} lost, ${wrong.length} wrong`,
        broken: violated(
          [lost > 0, `${lost} of ${events.length} events lost`],
          [wrong.length > 0, `${wrong.length} wrong, such as ${wrong[0]}`],
        ),
      };
    } finally {
      over = true;
      receiver.close();
    }
  },
};
