import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import type { Express } from 'express';
import { theApp, useStore } from '../support/app';
import { send } from '../support/http';

useStore();

interface Met {
  req: IncomingMessage;
  res: ServerResponse;
  born: [object, object];
}

/** The objects of some requests, with their prototypes before Express got them. */
async function meet(count: number): Promise<Met[]> {
  const server = theApp().getHttpServer() as Server;
  const met: Met[] = [];
  const listen = (req: IncomingMessage, res: ServerResponse) =>
    void met.push({ req, res, born: [Object.getPrototypeOf(req), Object.getPrototypeOf(res)] });
  server.prependListener('request', listen);
  for (let i = 0; i < count; i++) await send('GET', '/health/live');
  server.off('request', listen);
  return met;
}

test('gives Express the prototypes that it expects', async () => {
  const app = theApp().getHttpAdapter().getInstance() as Express;
  for (const { req, res, born } of await meet(2)) {
    expect(born[0]).toBe(app.request);
    expect(born[1]).toBe(app.response);
    expect(Object.getPrototypeOf(req)).toBe(born[0]);
    expect(Object.getPrototypeOf(res)).toBe(born[1]);
    expect(req).toBeInstanceOf(http.IncomingMessage);
    expect(res).toBeInstanceOf(http.ServerResponse);
  }
});

test('all requests, and all responses, have one V8 shape', async () => {
  setFlagsFromString('--allow-natives-syntax');
  const haveSameMap = new Function('a', 'b', 'return %HaveSameMap(a, b)') as (
    a: object,
    b: object,
  ) => boolean;
  // Shapes settle once the constructors are optimized.
  const [one, other] = (await meet(12)).slice(-2);
  expect(haveSameMap(one!.req, other!.req)).toBe(true);
  expect(haveSameMap(one!.res, other!.res)).toBe(true);
});
