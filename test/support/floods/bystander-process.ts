import { Tenant } from '../world/world';
import { BystanderClient } from './bystander-client';
import type { FromBystander, ToBystander } from './bystander';

const send = (message: FromBystander) => process.send?.(message);

let client: BystanderClient | undefined;

process.on('message', async (message: ToBystander) => {
  if (message.type === 'start') {
    client = new BystanderClient(message.base, new Tenant(message.tenant), message.in_time);
    send({ type: 'started' });
  } else if (client) {
    send({ type: 'stopped', seen: await client.stop() });
    process.disconnect();
  }
});
// Ends with the fuzzer, even if that was killed.
process.on('disconnect', () => process.exit());
