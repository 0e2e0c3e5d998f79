import { Injectable } from '@nestjs/common';

const MAX_RECORDED = 1000;
const MAX_BODY_CHARACTERS = 16_384;

export interface RecordedRequest {
  id: number;
  at: string;
  method: string;
  /** Path of the API description; null: a path that it doesn't contain. */
  path: string | null;
  url: string;
  query: unknown;
  body: unknown;
  credential: 'none' | 'key' | 'jwt' | 'session';
  user_id: number | null;
  status: number | null;
  ms: number;
  fault_id: number | null;
}

/** The latest requests, without the text of any credential. */
@Injectable()
export class RecordedRequests {
  private requests: RecordedRequest[] = [];
  private last_id = 0;

  add(request: Omit<RecordedRequest, 'id'>): void {
    const { body } = request;
    const isLarge = JSON.stringify(body ?? null).length > MAX_BODY_CHARACTERS;
    this.requests.push({ id: ++this.last_id, ...request, body: isLarge ? TOO_LARGE : body });
    if (this.requests.length > MAX_RECORDED) this.requests.shift();
  }

  since(id: number): RecordedRequest[] {
    return this.requests.filter((request) => request.id > id);
  }

  reset(): void {
    this.requests = [];
    this.last_id = 0;
  }
}

const HIDDEN = '[hidden]';
const TOO_LARGE = '[more than 16 KiB]';

const SECRET = /key|token|secret|password|code|credential|assertion|proof|jwt|bearer|authorization/i;
const NOT_SECRET =
  /^(?:download_key_id|with_key|with_keys|keep_keys|token_type_hint|grant_type|code_challenge_method)$/;

/** Replaces the values of parameters that hold secrets, at any depth. */
export function withoutSecrets(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 20) return HIDDEN;
  if (Array.isArray(value)) return value.map((one) => withoutSecrets(one, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      SECRET.test(name) && !NOT_SECRET.test(name) ? HIDDEN : withoutSecrets(one, depth + 1),
    ]),
  );
}

/** The path and query, without secrets in either. */
export function safeUrl(url: string): string {
  const [path = '', query] = url.split(/\?(.*)/s);
  const shown = path
    // Covers spellings that no route has, because clients send keys in them by mistake.
    .replace(/^(\/+api\/+1\/+)(?!(?:key|jwt)\/)[^/]+/i, `$1${HIDDEN}`)
    .replace(/^(\/+(?:files|download|l|links|upload-sessions)\/+)[^/]+/i, `$1${HIDDEN}`);
  if (query === undefined) return shown;
  const pairs = query.split('&').map((pair) => {
    const [name = ''] = pair.split('=');
    return SECRET.test(decoded(name)) && !NOT_SECRET.test(decoded(name)) ? `${name}=${HIDDEN}` : pair;
  });
  return `${shown}?${pairs.join('&')}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
