import type { ApiError } from './api-error';
import type { Exchange } from './in-flight';
import type { FixedHeader } from './response';
import type { Spending } from '../rate-limits/memory-storage';

/** The credential of a request, not verified. */
export interface Presented {
  type: 'key' | 'jwt';
  text: string;
}

/**
 * By the name of a rate limit: whose requests it counts. A limit without an entry doesn't apply. Verified credentials have a
 * `user`, and a `credential`: their API key, also for JWTs that were made from it.
 */
export type Trackers = Readonly<Partial<Record<string, string>>>;

/** An operator's token. */
export interface Operator {
  /** Of the token; null: the setting OPERATOR_TOKEN. */
  id: number | null;
  name: string;
  rights: readonly string[];
}

declare module 'node:http' {
  interface IncomingMessage {
    /** X-Request-Id, from the client or generated. */
    id: string;
    exchange: Exchange;
    /** The route of Express that matched. */
    route?: { path?: unknown; methods?: Record<string, boolean> };
    /** Absent when tracing is off. */
    trace_id?: string;
    /** Parameters from a header. */
    parametersInHeaders?: Record<string, string>;
    /** The credential, not verified, or what is wrong with it. */
    presented?: Presented | ApiError;
    /** Absent where no rate limits apply. */
    trackers?: Trackers;
    /** What it cost its IP address, refunded if its credential is valid. */
    spent_address?: Spending;
    /** What limits it as a lookup: how much is refunded if it finds something. */
    lookup?: Spending | 'anonymous';
    /** On paths under /operator/, where its token is good. */
    operator?: Operator;
    /** Resolves when the body has been parsed into `body`; absent before. */
    bodyParsed?: Promise<void>;
    /** On account pages: a `Visitor` of accounts/web/visitor.ts. */
    visitor?: object;
  }
  interface ServerResponse {
    /** Default headers, which the response may override. */
    fixed: readonly FixedHeader[];
    setRequestId(id: string): void;
    /** Ends the response together with the others of this tick of the event loop. */
    endSoon(body: string | Buffer): void;
    /** The response to a lookup has only empty lists. */
    found_nothing?: boolean;
    /** As the rate limit headers say. */
    requests_left: number;
    setRateLimit(limit: number, remaining: number, reset_seconds: number): void;
  }
}
