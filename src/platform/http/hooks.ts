import type { IncomingMessage, ServerResponse } from 'node:http';

export type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** Called once for each request, when its response is sent or its connection lost. */
export type Observer = (req: IncomingMessage, res: ServerResponse, ms: number) => void;

/** Extensions of the request gate by other modules. */
export interface RequestHooks {
  readonly observers: Observer[];
  /** Responds to requests whose URL begins with the prefix, without routing; returns false if it doesn't handle one. */
  shortcut: { prefix: string; handles(req: IncomingMessage, res: ServerResponse): boolean } | undefined;
  /** Wraps a request in a span; undefined when tracing is off. */
  trace: ((req: IncomingMessage, res: ServerResponse, next: Handler) => void) | undefined;
}
