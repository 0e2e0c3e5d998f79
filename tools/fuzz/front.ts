import type { Metrics } from './metrics';

/** The replica that connections and floods are sent to; it has the limits that it is deployed with. */
export interface Front {
  base: string;
  port: number;
  metrics: Metrics;
  /** Requests that are in flight for ever, as found before. */
  leaked: number;
  isRunning: () => boolean;
  /** In the place of one that a flood has spoilt. */
  restart: () => Promise<void>;
}
