import { connect, type Socket } from 'node:net';
import { sleep } from '../../../test/support/time';
import { ask } from '../ask';
import { Clients } from '../clients';
import { readMemoryBytes } from '../processes';
import { type Scenario, violated } from '../scenario';
import type { Service } from '../service';
import { DEVELOPER, NOVELISTS } from '../store';

/** Each belongs to its own user: one user's long responses are limited, and the others would be short rejections. */
const IDLE_READERS = NOVELISTS.length;
const SLOW_SENDERS = 200;
const MEGABYTE = 1024 ** 2;
/** Ten responses of a megabyte per client that doesn't read, and three times as much while they are created. */
const MOST_MEMORY = 300;
const DISCONNECTED_WITHIN = 20_000;

export const slowClients: Scenario = {
  name: 'slow-clients',
  fault: `${IDLE_READERS} clients that do not read megabytes of responses, ${SLOW_SENDERS} that send their body one byte at a time`,
  promise: `all disconnected within 20 s, at most ${MOST_MEMORY} MB more, others served`,
  control: 'no read timeouts',
  long: true,
  async run({ lab, guarded }) {
    const { service } = await lab.started({ without: guarded ? undefined : 'read timeouts' });
    const others = new Clients(
      4,
      (_, agent) => ask(`${service.url}/profile`, { key: DEVELOPER, agent, timeout: 5000 }),
      {
        pause: 20,
      },
    );
    await sleep(2000);
    const before = await readMemoryBytes(service.pid);
    const slow = Array.from({ length: SLOW_SENDERS }, () => openSlowSender(service));
    for (const novelist of NOVELISTS) {
      slow.push(openIdleReader(service, novelist));
      // Many large responses are work: this scenario isn't about how many are created at a time.
      await sleep(200);
    }
    let most = before;
    const begun = performance.now();
    while (performance.now() - begun < DISCONNECTED_WITHIN && slow.some((socket) => !socket.closed)) {
      await sleep(100);
      most = Math.max(most, await readMemoryBytes(service.pid));
    }
    const took = performance.now() - begun;
    const left = slow.filter((socket) => !socket.closed).length;
    for (const socket of slow) socket.destroy();
    const tally = await others.stop();
    const more = (most - before) / MEGABYTE;
    return {
      happened: `${slow.length - left} of ${slow.length} disconnected within ${(took / 1000).toFixed(1)} s, ${more.toFixed(0)} MB more; others: ${tally}`,
      broken: violated(
        [left > 0, `${left} still connected`],
        [more > MOST_MEMORY, `${more.toFixed(0)} MB more`],
        [tally.other(200) > 0, `others: ${tally}`],
      ),
    };
  },
};

/** Requests far more than any socket buffers, and reads nothing. */
function openIdleReader(service: Service, key: string): Socket {
  const socket = connect(service.port, '127.0.0.1');
  const request = `GET /profile/games HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  socket.on('error', () => undefined).write(request.repeat(9));
  socket.pause();
  // A socket that isn't read doesn't notice the close by the other end: only writing reveals it.
  const probe = setInterval(() => socket.write('\r\n'), 500);
  socket.on('close', () => clearInterval(probe));
  return socket;
}

function openSlowSender(service: Service): Socket {
  const socket = connect(service.port, '127.0.0.1');
  socket.on('error', () => undefined).resume();
  socket.write(
    `POST /collections HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${DEVELOPER}\r\n` +
      'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n',
  );
  const drip = setInterval(() => socket.write('x'), 500);
  socket.on('close', () => clearInterval(drip));
  return socket;
}
