import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplication } from '@nestjs/common';
import { Settings } from '../config/settings';
import { FrontDoor } from '../http/front-door';

const LOOK_EVERY = 50;
// Every request is answered by then: see in-flight.ts.
const LAST_ANSWERS = 5000;

/**
 * Stops without failing a request: reports that it is not ready and asks every client, with its answer, to connect anew;
 * serves on for as long as a load balancer may still send some; and closes when the last is answered.
 */
export async function gracefulStop(app: INestApplication): Promise<void> {
  const { DRAIN_SECONDS = 0 } = app.get(Settings);
  const frontDoor = app.get(FrontDoor);
  frontDoor.draining = true;
  await sleep(DRAIN_SECONDS * 1000);
  const server = app.getHttpServer() as Server;
  const closed = new Promise((resolve) => server.close(resolve));
  const deadline = performance.now() + LAST_ANSWERS;
  while (frontDoor.inFlight.count > 0 && performance.now() < deadline) {
    await sleep(LOOK_EVERY);
    // Those that became idle since.
    server.closeIdleConnections();
  }
  server.closeAllConnections();
  await closed;
  await app.close();
}
