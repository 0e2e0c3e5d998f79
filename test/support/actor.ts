import { type HttpResponse, send } from './http';

export type Fields = Record<string, unknown>;

const encoded = (fields: Fields) =>
  new URLSearchParams(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]): [string, string] => [
        name,
        typeof value === 'object' ? JSON.stringify(value) : String(value),
      ]),
  ).toString();

/** A client of the service: returns only the status and body of responses, which tests compare. */
export class Actor {
  constructor(
    readonly id: number,
    readonly username: string,
    readonly key: string | undefined,
  ) {}

  /** The same user with another credential. */
  with(credential: string | undefined): Actor {
    return new Actor(this.id, this.username, credential);
  }

  get headers(): Record<string, string> {
    return this.key === undefined ? {} : { authorization: `Bearer ${this.key}` };
  }

  async get(path: string, query: Fields = {}): Promise<HttpResponse> {
    const question = encoded(query);
    const { status, body } = await send('GET', question ? `${path}?${question}` : path, {
      headers: this.headers,
    });
    return { status, body };
  }

  post(path: string, form?: Fields): Promise<HttpResponse> {
    return this.write('POST', path, form);
  }

  async write(method: string, path: string, form: Fields = {}): Promise<HttpResponse> {
    const { status, body } = await send(method, path, {
      headers: { ...this.headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: encoded(form),
    });
    return { status, body };
  }

  async postJson(path: string, json: unknown, headers: Record<string, string> = {}): Promise<HttpResponse> {
    const { status, body } = await send('POST', path, {
      headers: { ...this.headers, 'content-type': 'application/json', ...headers },
      body: typeof json === 'string' ? json : JSON.stringify(json),
    });
    return { status, body };
  }
}

export const anonymous = new Actor(0, 'anonymous', undefined);
