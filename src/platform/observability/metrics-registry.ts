import { Counter, Gauge, Registry } from 'prom-client';

/** Creates the metrics of the service. */
export class MetricsRegistry {
  readonly registry = new Registry();

  /** `labels`: the values of each label that are exposed from the start. */
  counter<Label extends string = never>(
    name: string,
    help: string,
    labels = {} as Record<Label, readonly string[]>,
  ): Counter<Label> {
    const labelNames = Object.keys(labels) as Label[];
    const counter = new Counter({ name, help, labelNames, registers: [this.registry] });
    const series = labelNames.reduce<Partial<Record<Label, string>>[]>(
      (all, label) => all.flatMap((one) => labels[label].map((value) => ({ ...one, [label]: value }))),
      [{}],
    );
    for (const one of series) counter.inc(one, 0);
    return counter;
  }

  /** A counter of numbers that are read when it is scraped, because calls of `inc()` for each request are slow. */
  totals<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    read: () => (readonly [labels: Record<Label, string>, total: number])[],
  ): void {
    new Counter({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        this.reset();
        for (const [labels, total] of read()) this.inc(labels, total);
      },
    });
  }

  gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
      },
    });
  }
}
