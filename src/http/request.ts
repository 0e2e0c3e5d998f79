import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Connection } from './connection';
import type { Exchange } from './exchange';
import type { FixedHeader } from './outgoing-answer';
import type { Given } from './parameter-sources';

/** A credential as a request presents it, not verified yet. */
export interface Presented {
  type: 'key' | 'jwt';
  text: string;
}

/** The names under which limits count a credential. */
export interface LimitedAs {
  /** The API key, also for the JWTs that are made from it: making more of them gives no more. */
  credential: string;
  user: string;
}

declare module 'node:http' {
  interface IncomingMessage {
    /** Given by the caller in X-Request-Id, or made here; on every answer and every log line. */
    id: string;
    /** What the front door knows about this request. */
    exchange: Exchange;
    /** Of the trace that this service writes; absent when tracing is off. */
    trace_id?: string;
    /** Parameters that a header carries. */
    parametersInHeaders?: Record<string, string>;
    /** The credential, once somebody asked for it; null: there is none. */
    presented?: Presented | null;
    /** The names under which the credential is counted, once they are known. */
    limited_as?: LimitedAs;
    /** The limit of lookups that find nothing: spent before the lookup, given back where it finds something. */
    misses?: object;
    /** What the body carries, where somebody read it before the handler's parameters are read. */
    givenInBody?: Promise<Given>;
    /** Lookups that find nothing are counted. */
    is_lookup?: true;
    /** On account pages: a `Visitor` of accounts/web/visitor.ts. */
    visitor?: object;
  }
  interface ServerResponse {
    /** Headers that this answer has unless it sets others of the same name. */
    fixed: readonly FixedHeader[];
    setRequestId(id: string): void;
    setRateLimit(limit: number, remaining: number, reset_seconds: number): void;
    /** Every list in the answer is empty. */
    found_nothing?: true;
  }
}

/** A socket of the HTTP server. */
export interface ClientSocket extends Socket {
  client: Connection;
}

export type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** Called once for every request, when its answer was sent or its connection is gone. */
export type Observer = (req: IncomingMessage, res: ServerResponse, ms: number) => void;

/** What other modules add to the front door. */
export interface FrontDoorHooks {
  readonly observers: Observer[];
  /** Answers what needs no routing; false: the route has to. */
  shortcut: ((req: IncomingMessage, res: ServerResponse) => boolean) | undefined;
  /** Wraps a request in a span; undefined when tracing is off. */
  trace: ((req: IncomingMessage, res: ServerResponse, next: Handler) => void) | undefined;
}
