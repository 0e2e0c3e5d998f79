import type { ApiError } from '../errors/api-error';
import type { InFlightRequest } from './admission';
import type { DefaultHeader } from '../output/response';

/** The unverified credential of a request. */
export interface UnverifiedCredential {
  type: 'key' | 'jwt';
  text: string;
}

/**
 * The subject whose requests each rate limit counts, by the name of the limit. A limit without an entry doesn't apply.
 * Verified credentials have a `user`, and a `credential`: their API key, including for JWTs issued with it.
 */
export type RateLimitKeys = Readonly<Partial<Record<string, string>>>;

/** An operator's token. */
export interface Operator {
  /** The ID of the token; null: the setting OPERATOR_TOKEN. */
  id: number | null;
  name: string;
  permissions: readonly string[];
}

declare module 'node:http' {
  interface IncomingMessage {
    /** X-Request-Id, from the client or generated. */
    id: string;
    inFlight: InFlightRequest;
    /** The route of Express that matched. */
    route?: { path?: unknown; methods?: Record<string, boolean> };
    /** Absent when tracing is off. */
    traceId?: string;
    /** Parameters from a header. */
    parametersInHeaders?: Record<string, string>;
    /** The unverified credential, or the problem with it. */
    unverifiedCredential?: UnverifiedCredential | ApiError;
    /** Undefined if no rate limits apply. */
    rateLimitKeys?: RateLimitKeys;
    /** Set for requests under /operator/ with a valid token. */
    operator?: Operator;
    /** Resolves when the body has been parsed into `body`; absent before. */
    bodyParsed?: Promise<void>;
    /** Set for account pages: a `Visitor` of dashboard/layout/visitor.ts. */
    visitor?: object;
  }
  interface ServerResponse {
    /** Default headers, which the response may override. */
    defaultHeaders: readonly DefaultHeader[];
    setRequestId(id: string): void;
    /** Ends the response together with the others of this tick of the event loop. */
    sendAtEndOfTick(body: string | Buffer): void;
    /** Set for a lookup: the response has only empty lists, so it counts as failed in LookupLimitGuard. */
    foundNothing?: boolean;
    /** The fewest remaining requests of any rate limit. */
    requestsLeft: number;
    setRateLimit(limit: number, remaining: number, resetSeconds: number): void;
  }
}

declare module 'express-serve-static-core' {
  interface Locals {
    /** The methods of the routes of a path. Set by the HTTP adapter. */
    listMethods(path: string): string[];
  }
}
