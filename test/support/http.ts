import type { NestExpressApplication } from '@nestjs/platform-express';
import { describeApi } from '../../src/platform/openapi/describe-api';
import { baseUrl, theApp } from './app';
import { Contract } from './contract';

const contracts = new WeakMap<NestExpressApplication, Contract>();

/** The contract is built on first use, because many files send no request that it describes. */
export function theContract(): Contract {
  const app = theApp();
  const contract = contracts.get(app) ?? new Contract(describeApi(app), describeApi(app, 'operator'));
  contracts.set(app, contract);
  return contract;
}

export interface HttpResponse {
  status: number;
  body: unknown;
}

export const ok = (body: unknown): HttpResponse => ({ status: 200, body });
export const failure = (status: number, ...errors: string[]): HttpResponse => ({ status, body: { errors } });

/** Sends one request, validates the response against the API description, and returns all of it. */
export async function send(
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: RequestInit['body'] } = {},
): Promise<HttpResponse & { headers: Headers; text: string }> {
  const response = await fetch(baseUrl() + path, { method, redirect: 'manual', ...options });
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  const body: unknown = type.startsWith('application/json') ? JSON.parse(text) : text;
  const { status, headers } = response;
  theContract().check(method, path, { status, body, header: (name) => headers.get(name) });
  // Rejected requests are invalid on purpose.
  if (status < 300)
    theContract().checkRequest(method, path, options.headers?.['content-type'] ?? '', options.body);
  return { status, body, headers, text };
}
