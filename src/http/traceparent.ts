export interface TraceParent {
  trace_id: string;
  span_id: string;
  sampled: boolean;
}

// 00-TRACE-SPAN-FLAGS; a trace or span of zeros is invalid.
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-|$)/;

/** The trace that the caller's request belongs to (W3C Trace Context). */
export function traceParentOf(header: unknown): TraceParent | undefined {
  const [, trace_id, span_id, flags] = (typeof header === 'string' && TRACEPARENT.exec(header)) || [];
  if (!trace_id || !span_id || !flags) return undefined;
  return { trace_id, span_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
