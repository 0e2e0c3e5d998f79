import type { IncomingMessage, ServerResponse } from 'node:http';

export type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** Called once for each request, when its response is sent or its connection lost. */
export type Observer = (req: IncomingMessage, res: ServerResponse, ms: number) => void;
