import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplication } from '@nestjs/common';
import { Clock } from '../config/clock';
import { Settings } from '../config/settings';
import { RequestGate } from '../server/request-gate';

const STOP_CHECK_INTERVAL_MS = 50;
// Longer than the deadlines of requests: see admission.ts.
const REQUESTS_TIMEOUT_MS = 5000;

/**
 * Reports that the service isn't ready while the load balancer drains it; then accepts no connections, and
 * closes after the last response.
 */
export async function gracefulStop(
  app: INestApplication,
  closeTimeoutMs = REQUESTS_TIMEOUT_MS,
): Promise<void> {
  const { DRAIN_SECONDS = 0 } = app.get(Settings);
  const gate = app.get(RequestGate);
  gate.isDraining = true;
  await sleep(DRAIN_SECONDS * 1000);
  const server = app.getHttpServer() as Server;
  const closed = new Promise((resolve) => server.close(resolve));
  const clock = app.get(Clock);
  const deadline = clock.monotonic() + closeTimeoutMs;
  while (gate.admission.count > 0 && clock.monotonic() < deadline) {
    await sleep(STOP_CHECK_INTERVAL_MS);
    server.closeIdleConnections();
  }
  server.closeAllConnections();
  await closed;
  await app.close();
}
