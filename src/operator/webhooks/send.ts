import { createHmac } from 'node:crypto';
import { promises as dns } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isIP } from 'node:net';
import type { Clock } from '../../platform/config/clock';
import type { Settings } from '../../platform/config/settings';
import { isLoopbackAddress, isPublicAddress } from './public-address';

/** Limit of a delivery, from the DNS query to the end of the response. */
export const DELIVERY_TIMEOUT_MS = 10_000;
/** The connection is closed after this much of a response. */
const MAX_RESPONSE_BYTES = 64 * 1024;
/** Limits of the start of a response that is stored. */
const MAX_START_BYTES = 1024;
const MAX_START_CHARACTERS = 200;
/** Maximum number of interim responses such as 103. */
const MAX_INTERIM = 10;

export interface Message {
  id: string;
  type: string;
  /** Time of the event. */
  timestamp: string;
  data: object;
}

export interface ReceiverResponse {
  status: number;
  /** The wait that the receiver requests before the next attempt. */
  retryAfterSeconds?: number;
  /** The first characters of the body. */
  start: string;
}

/** There was no response. The message contains the reason, without any part of the URL. */
export class NotSent extends Error {}

export type AddressRules = Pick<Settings, 'NODE_ENV' | 'WEBHOOKS_ALLOW_PRIVATE'>;

export const bareHost = (url: URL) => url.hostname.replace(/^\[|\]$/g, '');

/** Whether a connection to this IP address is allowed. Unencrypted connections must stay on this machine. */
export function isAllowed(
  url: URL,
  address: string,
  { NODE_ENV, WEBHOOKS_ALLOW_PRIVATE }: AddressRules,
): boolean {
  if (url.protocol === 'http:')
    return isLoopbackAddress(address) && (WEBHOOKS_ALLOW_PRIVATE || NODE_ENV !== 'production');
  return WEBHOOKS_ALLOW_PRIVATE || isPublicAddress(address);
}

/** Sends a message, signed according to https://www.standardwebhooks.com. */
export async function send(
  { id, type, timestamp, data }: Message,
  { url, secret }: { url: URL; secret: Buffer },
  rules: AddressRules,
  signal: AbortSignal,
  clock: Clock,
): Promise<ReceiverResponse> {
  const body = JSON.stringify({ type, timestamp, data });
  const seconds = Math.floor(clock.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64');
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'Gamewharf-Webhooks',
    'webhook-id': id,
    'webhook-timestamp': seconds,
    'webhook-signature': `v1,${signature}`,
  };
  const lookup = createLookup(await resolveAddresses(url, rules, signal));
  // Loaded with the first message: most processes send none.
  const { request } = url.protocol === 'http:' ? await import('node:http') : await import('node:https');
  return new Promise((resolve, reject) => {
    let response: Omit<ReceiverResponse, 'start'> | undefined;
    const chunks: Buffer[] = [];
    let problem = 'no response';
    const options = { method: 'POST', headers, lookup, agent: false, signal } as const;
    const req = request(url, options, (res) => {
      const retryAfterSeconds = secondsIn(res.headers['retry-after'], clock.now());
      response = { status: res.statusCode!, retryAfterSeconds };
      let bytes = 0;
      res.on('data', (chunk: Buffer) => {
        if (bytes < MAX_START_BYTES) chunks.push(chunk.subarray(0, MAX_START_BYTES - bytes));
        if ((bytes += chunk.length) > MAX_RESPONSE_BYTES) res.destroy();
      });
      res.on('error', () => undefined);
    });
    let interim = 0;
    req.on('information', () => {
      if (++interim > MAX_INTERIM) req.destroy(new Error('too many interim responses'));
    });
    req.on('error', (error: NodeJS.ErrnoException) => (problem = error.code ?? problem));
    // Status 101 closes the request without a response and without an error.
    req.on('close', () => {
      if (response) resolve({ ...response, start: readStart(Buffer.concat(chunks)) });
      else reject(new NotSent(signal.aborted ? 'timeout' : problem));
    });
    req.end(body);
  });
}

/** Returns text that can be stored and shown: invalid UTF-8 and control characters are replaced. */
const readStart = (bytes: Buffer) =>
  [...bytes.toString('utf8').replace(/[\p{Cc}\s]+/gu, ' ')].slice(0, MAX_START_CHARACTERS).join('').trim();

/** Reads a Retry-After: seconds, or an HTTP date. */
function secondsIn(text = '', now: number): number | undefined {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  if (!/^[A-Z][a-z]+, .* GMT$/.test(text)) return undefined;
  const seconds = (Date.parse(text) - now) / 1000;
  return seconds > 0 ? seconds : undefined;
}

/**
 * The IP addresses of a server, each of them allowed; the connection uses one of these. Queries DNS directly:
 * getaddrinfo would block a thread until DNS responds.
 */
async function resolveAddresses(url: URL, rules: AddressRules, signal: AbortSignal): Promise<string[]> {
  const host = bareHost(url);
  const addresses = isIP(host)
    ? [host]
    : host === 'localhost'
      ? ['127.0.0.1', '::1']
      : await resolved(host, signal);
  if (addresses.length === 0) throw new NotSent('no address');
  if (!addresses.every((address) => isAllowed(url, address, rules))) throw new NotSent('private address');
  return addresses;
}

async function resolved(host: string, signal: AbortSignal): Promise<string[]> {
  const lookups = Promise.allSettled([dns.resolve4(host), dns.resolve6(host)]);
  const found = await Promise.race([lookups, aborted(signal)]);
  return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new NotSent('timeout')), { once: true });
  });

const createLookup =
  (addresses: string[]): LookupFunction =>
  (_host, { all }, found) => {
    const allFound = addresses.map((address) => ({ address, family: isIP(address) }));
    if (all) found(null, allFound);
    else found(null, allFound[0]!.address, allFound[0]!.family);
  };
