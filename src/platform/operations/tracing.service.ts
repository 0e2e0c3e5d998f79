import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import {
  type Context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { RequestGate } from '../server/request-gate';

const FLUSH_TIMEOUT_MS = 3000;

/** Exports a span for each request and each of its statements, if a collector is configured. */
@Injectable()
export class TracingService implements OnApplicationBootstrap, OnApplicationShutdown {
  private provider: BasicTracerProvider | undefined;
  private readonly spans = new WeakMap<IncomingMessage, Span>();

  constructor(
    private readonly settings: Settings,
    private readonly host: HttpAdapterHost,
    private readonly gate: RequestGate,
    private readonly database: Database,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const url = tracesUrl(this.settings);
    if (!url || !this.host.httpAdapter) return;
    const opened = await open(url);
    if (!opened) return;
    this.provider = opened.provider;
    const tracer = this.provider.getTracer('gamewharf');
    const current = new AsyncLocalStorage<Context>();

    this.gate.trace = (req, res, next) => {
      const parent = opened.propagator.extract(ROOT_CONTEXT, req.headers, defaultTextMapGetter);
      const span = tracer.startSpan(`${req.method}`, { kind: SpanKind.SERVER }, parent);
      this.spans.set(req, span);
      req.traceId = span.spanContext().traceId;
      current.run(trace.setSpan(ROOT_CONTEXT, span), next, req, res);
    };
    this.gate.observers.push((req, res) => this.ended(req, res));
    this.database.trace = async (name, work) => {
      const parent = current.getStore();
      if (!parent) return work();
      const span = tracer.startSpan(
        name,
        { kind: SpanKind.CLIENT, attributes: { 'db.system.name': 'postgresql', 'db.operation.name': name } },
        parent,
      );
      try {
        return await current.run(trace.setSpan(parent, span), work);
      } catch (error) {
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.provider?.forceFlush({ timeoutMillis: FLUSH_TIMEOUT_MS }).catch(() => undefined);
    await this.provider?.shutdown().catch(() => undefined);
  }

  // Spans have the route and not the URL, because paths contain keys and queries contain email addresses.
  private ended(req: IncomingMessage, { statusCode }: ServerResponse): void {
    const span = this.spans.get(req);
    if (!span) return;
    const { path } = req.route ?? {};
    span.setAttribute('http.request.method', String(req.method));
    span.setAttribute('http.response.status_code', statusCode);
    span.setAttribute('gamewharf.request_id', req.id);
    if (typeof path === 'string') {
      span.updateName(`${req.method} ${path}`);
      span.setAttribute('http.route', path);
    }
    if (statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }
}

export function tracesUrl(settings: Settings): string | undefined {
  if (settings.OTEL_SDK_DISABLED) return undefined;
  if (settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) return settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const collector = settings.OTEL_EXPORTER_OTLP_ENDPOINT;
  return collector && `${collector.replace(/\/+$/, '')}/v1/traces`;
}

// Imports the libraries here, so that nothing is loaded if tracing is off.
async function open(url: string) {
  try {
    const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
    const { W3CTraceContextPropagator } = await import('@opentelemetry/core');
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
    const { defaultResource, detectResources, envDetector, resourceFromAttributes } =
      await import('@opentelemetry/resources');
    const provider = new BasicTracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes({ 'service.name': 'gamewharf' }))
        .merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url }))],
    });
    return { provider, propagator: new W3CTraceContextPropagator() };
  } catch (error) {
    new Logger('Tracing').error(`No traces are written: ${(error as Error).message}`);
    return undefined;
  }
}
