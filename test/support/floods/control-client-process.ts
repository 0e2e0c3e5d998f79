import { Tenant } from '../world/world';
import { RequestLoop } from './request-loop';
import type { FromControlClient, ToControlClient } from './control-client';

const send = (message: FromControlClient) => process.send?.(message);

let client: RequestLoop | undefined;

process.on('message', async (message: ToControlClient) => {
  if (message.type === 'start') {
    client = new RequestLoop(message.base, new Tenant(message.tenant), message.in_time, message.connects);
    send({ type: 'started' });
  } else if (client) {
    send({ type: 'stopped', seen: await client.stop() });
    process.disconnect();
  }
});
// Ends with the fuzzer, even if that was killed.
process.on('disconnect', () => process.exit());
