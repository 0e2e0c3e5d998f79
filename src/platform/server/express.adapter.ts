import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { type RequestMethod, StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express from 'express';
import { OutgoingResponse, sendJson, WebResponse } from '../output/response';
import { parseFields } from '../input/body';
import { type RequestGate, MAX_HEADERS } from './request-gate';
import type { ClientSocket } from './connection';

const SECOND_MS = 1000;
export const MAX_HEADER_BYTES = 16 * 1024;

/** Classes with the prototypes that Express would set on each request, which would make V8 drop the request's shape. */
function nativeClasses(app: express.Express) {
  class Request extends http.IncomingMessage {
    /** Called by Node for each chunk of the body. */
    override push(piece: Buffer | null): boolean {
      // Without `inFlight` the request is ignored.
      if (piece !== null && !this.inFlight?.chunkReceived(piece.length)) return false;
      return super.push(piece);
    }
  }
  class Response<Asked extends IncomingMessage> extends OutgoingResponse<Asked> {}
  for (const [prototype, source] of [
    [Request.prototype, express.request],
    [Response.prototype, express.response],
  ])
    Object.defineProperties(prototype, { ...Object.getOwnPropertyDescriptors(source), app: { value: app } });
  Object.assign(app, { request: Request.prototype, response: Response.prototype });
  return { IncomingMessage: Request, ServerResponse: Response };
}

/** The routes of Express, which its types omit: it has no public API that lists them. */
interface Layer {
  route?: { methods: Record<string, boolean>; isMiddleware?: true };
  match(path: string): boolean;
}

/** The methods of the routes of that path. */
const listMethods = ({ router }: express.Express, path: string): string[] =>
  (router as unknown as { stack: Layer[] }).stack.flatMap((layer) =>
    layer.route && !layer.route.isMiddleware && layer.match(path) ? Object.keys(layer.route.methods) : [],
  );

export class GamewharfAdapter extends ExpressAdapter {
  constructor(trustedProxies: string[]) {
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.enable('strict routing');
    app.enable('case sensitive routing');
    app.set('query parser', parseFields);
    app.set('trust proxy', trustedProxies);
    super(app);
    app.locals.listMethods = (path) => listMethods(app, path);
  }

  override initHttpServer(): void {
    const server = http.createServer({
      ...nativeClasses(this.getInstance()),
      // The request gate checks the Host header.
      requireHostHeader: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: 8 * SECOND_MS,
      // admission.ts has the timeout of bodies.
      requestTimeout: 0,
      keepAliveTimeout: 65 * SECOND_MS,
      connectionsCheckingInterval: SECOND_MS,
    });
    // One more than the limit, so that the request gate sees that there are too many.
    server.maxHeadersCount = MAX_HEADERS + 1;
    // A client that closed its half of the connection still reads responses.
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on('checkExpectation', (req, res) => server.emit('request', req, res));
    this.httpServer = server;
  }

  /** Lets the gate handle all requests and connections. */
  serve(gate: RequestGate): void {
    const app = this.getInstance<express.Express>();
    const server = this.httpServer as http.Server;
    const isTrusted = app.get('trust proxy fn') as (address: string, distance: number) => boolean;
    const { admission: admission, brokenRequests } = gate;
    server.on('request', gate.before(app));
    server.on('connection', (socket: ClientSocket) =>
      admission.connect(socket, isTrusted(socket.remoteAddress ?? '', 0)),
    );
    server.on('clientError', (error, socket) => brokenRequests.respond(error, socket as ClientSocket));
    server.on('connect', (_req, socket) => brokenRequests.rejectConnect(socket as ClientSocket));
    server.on('listening', () => admission.start());
    server.on('close', () => admission.stop());
  }

  /** For Express, middleware of `forRoutes()` is a route. An unknown path must not count as one with a handler. */
  override createMiddlewareFactory(method: RequestMethod) {
    const register = super.createMiddlewareFactory(method);
    const { stack } = this.getInstance<express.Express>().router;
    return (path: string, middleware: unknown): void => {
      register(path, (req: express.Request, res: express.Response, next: express.NextFunction) =>
        (middleware as express.RequestHandler)(req, res, (error?: unknown) => {
          if (!error) req.route = undefined;
          next(error);
        }),
      );
      Object.assign(stack.at(-1)!.route ?? {}, { isMiddleware: true });
    };
  }

  /** Nest sets 201 before the handler of a POST runs. In this API, every success is 200. */
  override status(res: express.Response, status: number): unknown {
    return super.status(res, status === 201 ? 200 : status) as unknown;
  }

  /** Sends no body: the one that Express negotiates would also contain a signed URL. */
  override redirect(res: express.Response, status: number, url: string): void {
    res.location(url).status(status).setHeader('Content-Length', 0);
    res.sendAtEndOfTick('');
  }

  override reply(
    res: ServerResponse & express.Response,
    body: unknown,
    status?: number,
  ): void | Promise<void> {
    // The deadline may have sent a response already.
    if (res.writableEnded) return;
    if (body instanceof WebResponse) return body.sendTo(res);
    if (typeof body !== 'object' || body === null || body instanceof StreamableFile) {
      super.reply(res, body, status);
      return;
    }
    // LookupLimitGuard counts failed lookups.
    if (res.foundNothing !== undefined) res.foundNothing = hasOnlyEmptyLists(body);
    sendJson(res, status ?? res.statusCode, JSON.stringify(body), res.get('Content-Type'));
  }
}

const hasOnlyEmptyLists = (body: object) =>
  Object.values(body).every((value) => Array.isArray(value) && value.length === 0);
