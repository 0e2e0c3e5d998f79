import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { connectTo } from '../../src/operator/import/import-records';
import type { MeasuredServer } from './servers';
import type { Store } from './store';
import { apiKey, type Ask, type Endpoint } from './workload';

const REQUESTS = 50_000;

export interface Workload {
  endpoint: string;
  withoutStock?: true;
  /** The requests as the load generator sends them. */
  file: string;
  count: number;
  sample: Ask[];
}

export const authorization = (key: number) => (key === 0 ? undefined : `Bearer ${apiKey(key)}`);

function requestText({ path, key }: Ask): string {
  const credential = authorization(key);
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${credential ? `Authorization: ${credential}\r\n` : ''}\r\n`;
}

/** The requests of an endpoint on this store; generated once, so that every run sends the same. */
export async function prepareWorkload(endpoint: Endpoint, store: Store): Promise<Workload> {
  const slug = endpoint.name.replace(/[^a-z0-9]+/g, '-');
  const count = endpoint.requests ?? REQUESTS;
  const [file, sampled] = [`requests-${slug}-${count}.json`, `sample-${slug}-${count}.json`].map((name) =>
    join(store.folder, name),
  );
  if (!existsSync(sampled!)) {
    const client = await connectTo({ DATABASE_URL: store.url });
    const asks = await endpoint.asks(client, store, count);
    await client.end();
    writeFileSync(file!, JSON.stringify(asks.map(requestText)));
    writeFileSync(sampled!, JSON.stringify(asks.slice(0, 60)));
  }
  const sample = JSON.parse(readFileSync(sampled!, 'utf8')) as Ask[];
  return { endpoint: endpoint.name, withoutStock: endpoint.withoutStock, file: file!, count, sample };
}

/** Removes the parts that depend on the time of signing, and sorts the parameters. */
function unsigned(location: string): string {
  const url = new URL(location);
  for (const name of ['X-Amz-Date', 'X-Amz-Signature']) url.searchParams.delete(name);
  url.searchParams.sort();
  return url.href;
}

function fetchJson(port: number, { path, key }: Ask): Promise<{ status: number; body: unknown }> {
  return new Promise((resolve, reject) => {
    const headers = key === 0 ? {} : { authorization: authorization(key) };
    request({ port, host: '127.0.0.1', path, headers }, (res) => {
      let text = '';
      res.setEncoding('utf8');
      res.on('data', (chunk: string) => (text += chunk));
      res.on('end', () => {
        const { location } = res.headers;
        resolve({ status: res.statusCode!, body: location ? unsigned(location) : JSON.parse(text) });
      });
      res.on('error', reject);
    })
      .on('error', reject)
      .end();
  });
}

const excerpt = (response: unknown) => JSON.stringify(response).slice(0, 600);

/** Throws unless all servers send the same 200, or the same redirect, for a sample of the requests. */
export async function compareResponses(
  servers: MeasuredServer[],
  { endpoint, sample }: Workload,
  count: number,
): Promise<void> {
  for (const ask of sample.slice(0, count)) {
    const responses = await Promise.all(servers.map(({ port }) => fetchJson(port, ask)));
    responses.forEach((response, i) => {
      if ([200, 302].includes(response.status) && isDeepStrictEqual(response, responses[0])) return;
      const [first, other] = [servers[0]!, servers[i]!];
      throw new Error(
        `${endpoint}: ${ask.path} as key ${ask.key}: ${first.name} returns ${excerpt(responses[0])}, ` +
          `${other.name} ${excerpt(response)}`,
      );
    });
  }
}
