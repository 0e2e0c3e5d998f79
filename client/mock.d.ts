/** A record of the import format, such as `{ type: 'game', id: 1, user_id: 1, slug: 'moon', title: 'Moon' }`. */
export type MockRecord = { type: string } & Record<string, unknown>;

export interface Quirks {
  /** `object`: an empty list at the top level of a response is `{}`. */
  empty_lists: 'object' | 'array';
  /** Downloads of paid files need `download_key_id`. */
  download_key_required: boolean;
}

export interface MockOptions {
  /** Records to start with and to reset to: an array, NDJSON text, or the path of a file. */
  seed?: readonly MockRecord[] | string;
  /** `live` (default), `none`, or single quirks. */
  quirks?: 'live' | 'none' | Partial<Quirks>;
  /** Default: any free port. */
  port?: number;
}

export interface Sale {
  game_id: number | readonly number[];
  user_id?: number;
  email?: string;
  currency: string;
  /** An amount in minor units, such as cents. */
  amount: number;
  reference?: string;
  [field: string]: unknown;
}

export interface FaultMatch {
  method?: string;
  /** A path of the API description, such as `/games/{game_id}/purchases`. */
  path?: string;
  /** The first matching request to fail, from 1. */
  nth?: number;
  /** Number of requests that fail; 0 for all. Default: 1. */
  times?: number;
}

export interface FaultResponse {
  status?: number;
  errors?: readonly string[];
  headers?: Readonly<Record<string, string>>;
  delay_ms?: number;
  /** Closes the connection without a response. */
  close?: boolean;
  /** Number of bytes of the body after which the connection is closed. */
  truncate?: number;
}

export interface Fault {
  id: number;
  match: FaultMatch;
  then: FaultResponse;
  used: number;
}

export interface RecordedRequest {
  id: number;
  at: string;
  method: string;
  path: string | null;
  url: string;
  query: Record<string, unknown>;
  body: unknown;
  credential: 'none' | 'key' | 'jwt' | 'session';
  user_id: number | null;
  status: number | null;
  ms: number;
  fault_id: number | null;
}

export interface TokenRequest {
  user_id: number;
  game_id: number;
  /** Separated by spaces. Default: `profile:me`. */
  scope?: string;
  /** Seconds. Negative: the token has expired. */
  expires_in?: number;
  issuer?: string;
}

/** Rejections of all methods are errors with `status` and `errors` of the response. */
export interface MockStore {
  readonly url: string;
  /** The key of user 1, a developer. */
  readonly apiKey: string;
  /** Back to the seed, or to these records. */
  reset(records?: readonly MockRecord[] | string): Promise<void>;
  sell(sale: Sale): Promise<{
    purchase: { id: number } & Record<string, unknown>;
    download_keys: { id: number; game_id: number; key: string }[];
  }>;
  refund(
    refund: { purchase_id: number; keep_keys?: boolean } | { reference: string; keep_keys?: boolean },
  ): Promise<{ purchase: { id: number } & Record<string, unknown> }>;
  token(request: TokenRequest): Promise<{ key: string; expires_at: string }>;
  fault(fault: { match?: FaultMatch; then: FaultResponse }): Promise<Fault>;
  clearFaults(): Promise<void>;
  requests(options?: { since?: number }): Promise<RecordedRequest[]>;
  quirks(changed?: Partial<Quirks>): Promise<Quirks>;
  stop(): Promise<void>;
}

export declare function startMock(options?: MockOptions): Promise<MockStore>;
