import type { Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { Client } from '../../src/platform/limits/client-limits';
import { NewConnections } from '../../src/platform/server/new-connections';

test('a client that only opens connections does not prevent those of others from being read', async () => {
  const connections = new NewConnections();
  const add = (client: Client) => {
    const socket = { pause: jest.fn(), resume: jest.fn() };
    connections.add(socket as unknown as Socket, client);
    return socket;
  };
  const [flooding, other] = [new Client('192.0.2.1'), new Client('192.0.2.2')];
  add(other);
  const second = add(other);
  for (let tick = 0; tick < 40; tick++) {
    add(flooding);
    await nextTick();
  }
  expect(second.pause).toHaveBeenCalledTimes(1);
  expect(second.resume).toHaveBeenCalledTimes(1);
});
