import { once } from 'node:events';
import { Agent, createServer, get, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { databaseUrl, openApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { sleep, until } from '../support/time';

useStore();

const open = () => openApp({ DATABASE_URL: databaseUrl(), DRAIN_SECONDS: '3' });

interface HttpResponse {
  status: number;
  connection: string | undefined;
}

const ask = (url: string, headers: Record<string, string>, agent?: Agent) =>
  new Promise<HttpResponse>((resolve, reject) => {
    get(url, { headers, agent }, (res) => {
      res.resume();
      res.on('end', () => resolve({ status: res.statusCode!, connection: res.headers.connection }));
      res.on('error', reject);
    }).on('error', reject);
  });

/** Clients on kept-alive connections, and a load balancer that checks readiness. */
async function serveThroughStop(stop: (app: NestExpressApplication) => Promise<void>) {
  const [first, second] = [await open(), await open()];
  const [a, b] = [await first.getUrl(), await second.getUrl()];
  const headers = { authorization: `Bearer ${(await make.user()).key}` };
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  let target = a;
  let over = false;
  const failed: unknown[] = [];
  let served = 0;
  const probe = async () => {
    while (!over) {
      const { status } = await ask(`${a}/health/ready`, {}).catch(() => ({ status: 0 }));
      if (status !== 200) target = b;
      await sleep(100);
    }
  };
  const client = async () => {
    while (!over) {
      try {
        const { status } = await ask(`${target}/profile`, headers, agent);
        if (status === 200) served++;
        else failed.push(status);
      } catch (error) {
        failed.push((error as Error).message);
      }
    }
  };
  const all = [probe(), ...Array.from({ length: 8 }, client)];
  try {
    await sleep(300);
    await stop(first);
    await sleep(200);
  } finally {
    over = true;
    await Promise.all(all);
    agent.destroy();
    await second.close();
  }
  return { served, failed, moved: target === b };
}

test('no request fails when a replica stops under load', async () => {
  const { served, failed, moved } = await serveThroughStop(gracefulStop);
  expect(failed).toEqual([]);
  expect(moved).toBe(true);
  expect(served).toBeGreaterThan(10);
});

test('control: closing immediately fails some', async () => {
  const { failed } = await serveThroughStop(async (app) => {
    const server = app.getHttpServer() as Server;
    server.close();
    server.closeAllConnections();
    await app.close();
  });
  expect(failed.length).toBeGreaterThan(0);
});

test('reports that it is not ready while draining, keeps serving, and closes kept-alive connections', async () => {
  const app = await open();
  const url = await app.getUrl();
  const user = { authorization: `Bearer ${(await make.user()).key}` };
  const agent = new Agent({ keepAlive: true });
  expect((await ask(`${url}/profile`, user, agent)).connection).not.toBe('close');
  const stopped = gracefulStop(app);
  expect((await ask(`${url}/health/ready`, {})).status).toBe(503);
  expect((await ask(`${url}/health/live`, {})).status).toBe(200);
  expect(await ask(`${url}/profile`, user, agent)).toEqual({ status: 200, connection: 'close' });
  await stopped;
  await expect(ask(`${url}/health/live`, {})).rejects.toThrow('ECONNREFUSED');
});

test('disconnects a client that does not read the response', async () => {
  const app = await open();
  const { hostname, port } = new URL(await app.getUrl());
  const server = app.getHttpServer() as Server;
  const owner = await make.user();
  await sql(
    `INSERT INTO games (user_id, slug, title, short_text, published_at)
     SELECT $1, 'long-' || n, 'Long', repeat('x', 100000), now() FROM generate_series(1, 100) n`,
    [owner.id],
  );
  // Control: a default Node server keeps the responses indefinitely.
  const patient = createServer((_req, res) => res.end('x'.repeat(10_000_000))).listen(0, hostname);
  await once(patient, 'listening');
  const [socket, other] = [Number(port), (patient.address() as AddressInfo).port].map((to) =>
    connect(to, hostname),
  );
  for (const one of [socket!, other!]) one.on('error', () => undefined);
  // Requests on one connection whose responses exceed all socket buffers.
  const request = `GET /profile/games HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${owner.key}\r\n\r\n`;
  for (const one of [socket!, other!]) {
    one.write(request.repeat(8));
    one.pause();
  }
  const connections = (of: Server) =>
    new Promise<number>((resolve, reject) =>
      of.getConnections((error, n) => (error ? reject(error) : resolve(n))),
    );
  await until(async () => (await connections(server)) === 1);
  await until(async () => (await connections(server)) === 0);
  expect(await connections(patient)).toBe(1);
  socket!.destroy();
  other!.destroy();
  patient.close();
  await app.close();
});
