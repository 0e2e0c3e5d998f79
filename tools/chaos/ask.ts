import { Agent, request } from 'node:http';

export interface Question {
  method?: 'GET' | 'POST';
  key?: string;
  headers?: Record<string, string>;
  form?: Record<string, string>;
  body?: string;
  agent?: Agent;
  /** Milliseconds. */
  timeout?: number;
}

export interface HttpResponse {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
  ms: number;
}

/** One request. Rejects if no complete response arrives in time. */
export function ask(url: string, question: Question = {}): Promise<HttpResponse> {
  const { key, form, agent, timeout = 30_000 } = question;
  const body = form ? new URLSearchParams(form).toString() : question.body;
  const headers = {
    ...(key && { authorization: `Bearer ${key}` }),
    ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
    ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
    ...question.headers,
  };
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const req = request(url, { method: question.method ?? 'GET', headers, agent }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('error', reject);
      res.on('end', () => {
        clearTimeout(timer);
        resolve({
          status: res.statusCode!,
          headers: res.headers,
          body: Buffer.concat(chunks).toString(),
          ms: performance.now() - started,
        });
      });
    });
    const timer = setTimeout(() => req.destroy(new Error(`no response in ${timeout} ms`)), timeout);
    req.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    req.end(body);
  });
}

export const keptConnections = (maxSockets = Infinity) => new Agent({ keepAlive: true, maxSockets });
