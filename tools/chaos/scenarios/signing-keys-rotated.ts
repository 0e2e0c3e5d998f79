import type { Agent } from 'node:http';
import { sleep } from '../../../test/support/time';
import { type HttpResponse, ask } from '../ask';
import { Clients } from '../clients';
import { type Scenario, violated } from '../scenario';
import type { Service } from '../service';
import { GAME, KEYS } from '../store';

export const signingKeysRotated: Scenario = {
  name: 'signing-keys-rotated',
  fault: 'signing keys rotated every 5 s, two replicas under 20 clients',
  promise: 'no valid token rejected, whichever replica issued it',
  control: 'the old key retired immediately',
  long: true,
  async run({ lab, guarded, quick }) {
    const rotations = quick || !guarded ? 2 : 12;
    const postgres = await lab.postgres();
    await postgres.start();
    const replicas = await Promise.all([1, 2].map(() => lab.service(postgres.url)));
    await Promise.all(replicas.map((replica) => replica.start()));
    const tokens: Token[] = [];
    const clients = new Clients(20, (client, agent) => makeOrUse(replicas, tokens, client, agent), {
      pause: 10,
    });
    for (let i = 0; i < rotations; i++) {
      await sleep(5000);
      await lab.command(postgres.url, 'signing-keys', 'rotate', '--now');
      if (guarded) continue;
      const { output } = await lab.command(postgres.url, 'signing-keys', 'list');
      const old = output
        .split('\n')
        .filter((line) => line.includes('verify-only'))
        .map((line) => line.split(' ')[0]!);
      if (old.length === 0) throw new Error(`no old key in the list:\n${output}`);
      for (const kid of old) await lab.command(postgres.url, 'signing-keys', 'revoke', kid);
    }
    await sleep(2000);
    const tally = await clients.stop();
    return {
      happened: `${rotations} rotations, ${tokens.length} tokens: ${tally}`,
      broken: violated([tally.other(200) > 0, `${tally.other(200)} rejected`]),
    };
  },
};

interface Token {
  text: string;
  /** The replica that issued it. */
  maker: number;
}

/** Alternately issues a token and uses one at the replica that did not issue it. */
async function makeOrUse(
  replicas: Service[],
  tokens: Token[],
  client: number,
  agent: Agent,
): Promise<HttpResponse> {
  if (tokens.length > 0 && Math.random() < 0.5) {
    const newest = Math.random() < 0.5;
    const { text, maker } = tokens[newest ? tokens.length - 1 : Math.floor(Math.random() * tokens.length)]!;
    const other = replicas[(maker + 1) % replicas.length]!;
    return ask(`${other.url}/profile`, { key: text, timeout: 5000 });
  }
  const maker = client % replicas.length;
  const response = await ask(`${replicas[maker]!.url}/credentials/subkey`, {
    method: 'POST',
    key: KEYS[client],
    form: { game_id: String(GAME), scope: 'profile:me' },
    agent,
    timeout: 5000,
  });
  if (response.status === 200)
    tokens.push({ text: (JSON.parse(response.body) as { key: string }).key, maker });
  return response;
}
