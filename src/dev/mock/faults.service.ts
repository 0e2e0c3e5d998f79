import { STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http';
import { Injectable } from '@nestjs/common';
import { badRequest } from '../../platform/errors/api-error';
import { ApiPaths } from './api-paths';
import type { FaultRequest, FaultMatch, FaultResponse } from './mock.dto';

const MAX_FAULTS = 100;

/** Texts of the API for a status without `errors`. */
const USUAL_ERRORS: Readonly<Record<number, string>> = {
  400: 'malformed request',
  401: 'authentication required',
  404: 'invalid api endpoint',
  408: 'request timeout',
  413: 'request too large',
  414: 'URL too long',
  429: 'rate limit exceeded',
};

/** Responses that have no body by definition. */
const WITHOUT_BODY = [204, 304];

export interface Fault {
  id: number;
  match: FaultMatch;
  then: FaultResponse;
  /** Number of requests that it was applied to. */
  used: number;
}

interface StoredFault extends Fault {
  /** Number of matching requests, until it is used up. */
  seen: number;
}

/** The programmed misbehavior of the service: which requests fail, and how. */
@Injectable()
export class Faults {
  private faults: StoredFault[] = [];
  private last_id = 0;

  constructor(private readonly paths: ApiPaths) {}

  add(request: FaultRequest): Fault {
    const match = withoutEmpty(request.match ?? {});
    const then = withoutEmpty(request.then);
    if (match.path !== undefined && !this.paths.has(match.path))
      throw badRequest(
        'match.path must be a path of the API description, such as /games/{game_id}/purchases',
      );
    if (Object.keys(then).length === 0)
      throw badRequest('then must contain status, errors, headers, delay_ms, close or truncate');
    requireHeaders(then.headers ?? {});
    if (this.faults.length >= MAX_FAULTS) throw badRequest(`at most ${MAX_FAULTS} faults are possible`);
    const fault = { id: ++this.last_id, match, then, used: 0, seen: 0 };
    this.faults.push(fault);
    return withoutCounter(fault);
  }

  list(): Fault[] {
    return this.faults.map(withoutCounter);
  }

  clear(): void {
    this.faults = [];
  }

  reset(): void {
    this.clear();
    this.last_id = 0;
  }

  /** The first fault that applies to a request. Every matching fault counts the request. */
  take(method: string, template: string | null): Fault | undefined {
    let taken: StoredFault | undefined;
    for (const fault of this.faults) {
      const { match } = fault;
      const { times = 1, nth = 1 } = match;
      const isUsedUp = times > 0 && fault.used >= times;
      if (isUsedUp || (match.path ?? template) !== template || (match.method ?? method) !== method) continue;
      fault.seen++;
      if (fault.seen >= nth) taken ??= fault;
    }
    if (taken) taken.used++;
    return taken;
  }
}

function requireHeaders(headers: Record<string, unknown>): void {
  try {
    for (const [name, value] of Object.entries(headers)) {
      if (typeof value !== 'string' && typeof value !== 'number') throw new TypeError(name);
      validateHeaderName(name);
      validateHeaderValue(name, String(value));
    }
  } catch {
    throw badRequest('then.headers must contain valid header names and values');
  }
}

/** Omits fields that are null, because null means the same as a missing field. */
const withoutEmpty = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  ) as Fields;

const withoutCounter = ({ seen: _, ...fault }: StoredFault): Fault => fault;

/** Status and body of a fault; undefined: the service responds as usual. */
export function responseToFault({
  status,
  errors,
}: FaultResponse): { status: number; body?: object } | undefined {
  if (status === undefined && errors === undefined) return undefined;
  const sent = status ?? 400;
  if (WITHOUT_BODY.includes(sent)) return { status: sent };
  if (errors === undefined && sent < 400) return { status: sent, body: {} };
  return { status: sent, body: { errors: errors ?? [usualError(sent)] } };
}

const usualError = (status: number) =>
  USUAL_ERRORS[status] ?? STATUS_CODES[status]?.toLowerCase() ?? 'internal server error';
