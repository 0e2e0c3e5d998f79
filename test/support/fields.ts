export interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
}

/** A body as passed to fetch. */
export type Body = RequestInit['body'];

const WORDS: Record<string, boolean> = {
  true: true,
  1: true,
  on: true,
  yes: true,
  false: false,
  0: false,
  off: false,
  no: false,
};

/** Converts text to the type of the schema; returns the text itself if it can't be converted. */
export function read({ type }: Schema, text: string, isJson = false): unknown {
  if (isJson) return JSON.parse(text);
  if (type === 'integer' && /^\d+$/.test(text)) return Number(text);
  if (type === 'number' && /^[-\d.]+$/.test(text)) return Number(text);
  if (type === 'boolean') return WORDS[text.toLowerCase()] ?? text;
  return text;
}

/** The fields of a body, or undefined without a body. */
export function parseBodyFields(type: string, body: Body): [string, unknown][] | undefined {
  if (body instanceof FormData) return [...body.entries()];
  const text = Buffer.isBuffer(body) ? body.toString() : typeof body === 'string' ? body : '';
  if (text === '') return undefined;
  if (type.startsWith('application/json')) return Object.entries(JSON.parse(text) as object);
  if (type.startsWith('multipart/form-data')) return parseParts(text);
  return [...new URLSearchParams(text)];
}

const PART = /content-disposition: form-data; name="([^"]+)"[^]*?\r\n\r\n([^]*?)\r\n--/gi;
const parseParts = (text: string) =>
  [...text.matchAll(PART)].map(([, name, value]): [string, string] => [name!, value!]);
