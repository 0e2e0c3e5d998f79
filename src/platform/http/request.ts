import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiError } from './api-error';
import type { Exchange } from './in-flight';
import type { FixedHeader } from './answer';
import type { Connection } from './connection';
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
    /** On paths under /operator/, where its token is good. */
    operator?: Operator;
    /** Resolves when the body has been parsed into `body`; absent before. */
    bodyParsed?: Promise<void>;
    /** On account pages: a `Visitor` of accounts/web/visitor.ts. */
    visitor?: object;
  }
  interface ServerResponse {
    /** Default headers, which the answer may override. */
    fixed: readonly FixedHeader[];
    setRequestId(id: string): void;
    /** As the rate limit headers say. */
    requests_left: number;
    setRateLimit(limit: number, remaining: number, reset_seconds: number): void;
  }
}

/** A socket of the HTTP server. */
export interface ClientSocket extends Socket {
  connection: Connection;
}

export type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** Called once for each request, when its answer is sent or its connection lost. */
export type Observer = (req: IncomingMessage, res: ServerResponse, ms: number) => void;

/** What other modules add to the request gate. */
export interface RequestHooks {
  readonly observers: Observer[];
  /** Answers requests whose URL begins so without routing; false: not answered. */
  shortcut: { prefix: string; answers(req: IncomingMessage, res: ServerResponse): boolean } | undefined;
  /** Wraps a request in a span; undefined when tracing is off. */
  trace: ((req: IncomingMessage, res: ServerResponse, next: Handler) => void) | undefined;
}
