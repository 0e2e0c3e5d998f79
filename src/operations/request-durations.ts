import type { IncomingMessage, ServerResponse } from 'node:http';

// In seconds.
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** The route of Express that matched the request. */
interface Route {
  path?: unknown;
  methods?: Record<string, boolean>;
}

interface Series {
  method: string;
  route: string;
  status: string;
  /** Requests in each bucket (not cumulated); the last number is those above all buckets. */
  counts: number[];
  sum: number;
}

const OTHER = { method: 'other', route: 'other' };

/**
 * A histogram of response times by route template and class of status. Series are found by the route object, so that
 * nothing is hashed and requests cannot create new series.
 */
export class RequestDurations {
  private readonly routes = new Map<object, (Series | undefined)[]>();

  readonly observe = (
    req: IncomingMessage & { route?: Route },
    { statusCode }: ServerResponse,
    ms: number,
  ) => {
    const route = req.route ?? OTHER;
    let series = this.routes.get(route);
    if (!series) this.routes.set(route, (series = []));
    const status = Math.floor(statusCode / 100);
    const one = (series[status] ??= seriesOf(req.route, status));
    const seconds = ms / 1000;
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > BUCKETS[bucket]!) bucket++;
    one.counts[bucket]!++;
    one.sum += seconds;
  };

  /** In prom-client's format of a histogram. */
  get() {
    const name = 'gamewharf_http_request_duration_seconds';
    const values = [...this.routes.values()].flat().flatMap((series) => {
      if (!series) return [];
      const { counts, sum, ...labels } = series;
      let total = 0;
      const buckets = [...BUCKETS, '+Inf'].map((le, i) => {
        total += counts[i]!;
        return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total };
      });
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: total },
      ];
    });
    return { name, help: 'Time to answer, by route', type: 'histogram', values, aggregator: 'sum' };
  }
}

function seriesOf(route: Route | undefined, status: number): Series {
  const { methods, path } = route ?? {};
  const [method] = Object.keys(methods ?? {});
  return {
    ...(method && typeof path === 'string' ? { method: method.toUpperCase(), route: path } : OTHER),
    status: `${status}xx`,
    counts: new Array<number>(BUCKETS.length + 1).fill(0),
    sum: 0,
  };
}
