import { moment, until } from '../../test/support/time';
import { ask } from './ask';
import type { Balancer } from './balancer';
import type { Lab } from './lab';
import type { Service } from './service';

export interface Place {
  lab: Lab;
  database: string;
  balancer: Balancer;
  /** The replica that is restarted; the other one lives through it all. */
  restarted: Service;
}

const IMPORTED_USERS = 2000;

/** As many users each time, every one of them changed. Answers what went wrong. */
export async function importUsers({ lab, balancer }: Place, time: number): Promise<string | undefined> {
  const records = Array.from({ length: IMPORTED_USERS }, (_, i) => ({
    type: 'user',
    id: 1000 + i,
    username: `imported${i}`,
    display_name: `Import ${time}`,
    emails: [{ email: `imported${i}@example.com`, verified: true }],
  }));
  const { status, body } = await ask(`${balancer.url}/operator/import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${lab.operator_token}`, 'content-type': 'application/x-ndjson' },
    body: records.map((record) => JSON.stringify(record)).join('\n'),
  });
  return status === 200 ? undefined : `import: ${status} ${body}`;
}

/** A key is made, used, revoked, and refused by every replica. */
export async function revokeKey({ lab, database, balancer }: Place): Promise<string | undefined> {
  const made = await lab.command(database, 'keys', 'create', '--user', 'user2', '--label', 'soak');
  const key = made.output.trim();
  const id = /^Key (\d+)/m.exec(made.notes)?.[1] ?? '';
  const statusOf = async () => (await ask(`${balancer.url}/profile`, { key, timeout: 5000 })).status;
  const before = await statusOf();
  if (before !== 200) return `a new key: ${before}`;
  await lab.command(database, 'keys', 'revoke', id);
  await moment(1100);
  const after = [await statusOf(), await statusOf()];
  return after.every((status) => status === 401) ? undefined : `a revoked key: ${after.join(' ')}`;
}

export async function restart({ balancer, restarted }: Place): Promise<string | undefined> {
  const code = await restarted.stop();
  await restarted.start();
  await until(() => balancer.knows(restarted), 10_000);
  return code === 0 ? undefined : `a replica ended with ${code}`;
}
