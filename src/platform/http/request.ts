import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiError } from './api-error';
import type { Exchange } from './in-flight';
import type { FixedHeader } from './answer';
import type { Connection } from './connection';

/** The credential of a request, not verified. */
export interface Presented {
  type: 'key' | 'jwt';
  text: string;
}

/** The names under which limits count a credential. */
export interface LimitedAs {
  /** The API key; JWTs count for the key that they were made from. */
  credential: string;
  user: string;
}

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
    /** Set when the credential is known. */
    limited_as?: LimitedAs;
    /** On paths under /operator/, where its token is good. */
    operator?: Operator;
    /** The limit of lookups that find nothing: counted before the lookup, undone if it finds something. */
    misses?: object;
    /** Resolves when the body has been parsed into `body`; absent before. */
    bodyParsed?: Promise<void>;
    /** Lookups that find nothing are counted. */
    is_lookup?: true;
    /** On account pages: a `Visitor` of accounts/web/visitor.ts. */
    visitor?: object;
  }
  interface ServerResponse {
    /** Default headers, which the answer may override. */
    fixed: readonly FixedHeader[];
    setRequestId(id: string): void;
    setRateLimit(limit: number, remaining: number, reset_seconds: number): void;
    /** Every list in the answer is empty. */
    found_nothing?: true;
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
