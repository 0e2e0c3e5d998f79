import type { Json } from './json';

/** A parameter as it is sent. `raw`: the value is already encoded for the URL or form. */
export interface Field {
  name: string;
  value: Json;
  place: 'query' | 'body';
  raw?: boolean;
}

export type Encoding = 'form' | 'json' | 'multipart';

/** One request by its meaning, not its bytes: it can be generated, shrunk, stored and sent again. */
export interface Ask {
  /** The method and path, such as `POST /collections/{collection_id}`. */
  operation: string;
  /** The name of a credential of tenant 0, such as `a:profile`. */
  credential: string;
  /** The format of the Authorization header, such as `Bearer CREDENTIAL`. */
  scheme: string;
  path: Record<string, string>;
  fields: Field[];
  encoding: Encoding;
  headers: [name: string, value: string][];
  /** A method other than that of the operation. */
  method?: string;
  /** A body of another type instead of the fields. */
  body?: { type: string; text: string; repeat?: number };
}

const toText = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value));

// encodeURIComponent throws for a lone surrogate, so its three bytes are encoded as a careless client would.
const percent = (text: string) =>
  [...text]
    .map((character) => {
      const code = character.codePointAt(0)!;
      if (code < 0xd800 || code > 0xdfff) return encodeURIComponent(character);
      const bytes = [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)];
      return bytes.map((byte) => `%${byte.toString(16)}`).join('');
    })
    .join('');

const encodePairs = (fields: Field[]) =>
  fields
    .map(({ name, value, raw }) => `${percent(name)}=${raw ? toText(value) : percent(toText(value))}`)
    .join('&');

/** A query of valid fields, as a client sends it. */
const encodeQuery = (fields: Record<string, string>) =>
  encodePairs(Object.entries(fields).map(([name, value]): Field => ({ name, value, place: 'query' })));

const BOUNDARY = 'fuzz-boundary';

const encodeMultipart = (fields: Field[]) =>
  fields
    .map(
      ({ name, value }) =>
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name.replace(/[\x00-\x1f\x7f"]/g, '')}"\r\n\r\n${toText(value)}\r\n`,
    )
    .join('') + `--${BOUNDARY}--\r\n`;

// The JSON is built by hand, so that a name can be repeated.
const encodeJson = (fields: Field[]) =>
  `{${fields.map(({ name, value }) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`;

export const TYPES: Record<Encoding, string> = {
  form: 'application/x-www-form-urlencoded',
  json: 'application/json',
  multipart: `multipart/form-data; boundary=${BOUNDARY}`,
};

const ENCODE: Record<Encoding, (fields: Field[]) => string> = {
  form: encodePairs,
  json: encodeJson,
  multipart: encodeMultipart,
};

export interface Message {
  method: string;
  path: string;
  headers: [name: string, value: string][];
  body?: Buffer;
}

export const formMessage = (
  path: string,
  fields: Record<string, string>,
  headers: Message['headers'] = [],
): Message => ({
  method: 'POST',
  path,
  headers: [...headers, ['Content-Type', TYPES.form]],
  body: Buffer.from(encodeQuery(fields)),
});

const clean = (value: string) => value.replace(/[\r\n]/g, '');

export function encodeMessage({ method, path, headers, body }: Message): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1'];
  for (const [name, value] of headers) lines.push(`${name}: ${clean(value)}`);
  if (body || method === 'POST') lines.push(`Content-Length: ${body?.length ?? 0}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return body ? Buffer.concat([head, body]) : head;
}

/** The request as a message; `credential` is the text behind its name. */
export function buildMessage(ask: Ask, credential: string): Message {
  const [method = '', template = ''] = ask.operation.split(' ');
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => percent(ask.path[name] ?? ''));
  const inQuery = ask.fields.filter(({ place }) => place === 'query');
  const inBody = ask.fields.filter(({ place }) => place === 'body');
  const headers = [...ask.headers];
  // Node reads headers as Latin-1, so they are written that way.
  if (credential !== '') headers.push(['Authorization', ask.scheme.replace('CREDENTIAL', credential)]);
  let body: Buffer | undefined;
  if (ask.body) {
    headers.push(['Content-Type', ask.body.type]);
    body = Buffer.from(ask.body.text.repeat(ask.body.repeat ?? 1));
  } else if (inBody.length > 0) {
    headers.push(['Content-Type', TYPES[ask.encoding]]);
    body = Buffer.from(ENCODE[ask.encoding](inBody));
  }
  return {
    method: ask.method ?? method,
    path: inQuery.length > 0 ? `${path}?${encodePairs(inQuery)}` : path,
    headers,
    body,
  };
}
