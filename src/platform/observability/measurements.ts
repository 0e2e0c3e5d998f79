import { Counter as PromCounter, Gauge, Registry } from 'prom-client';

type Labels = Readonly<Record<string, string>>;

interface Series {
  labels: Labels;
  read: () => number;
}

/** Its owner adds to `value` directly: prom-client would hash the labels at each increment. */
export class Counter {
  value = 0;
}

/** The metrics of the service, whose values prom-client reads at each scrape. */
export class Measurements {
  readonly registry = new Registry();
  /** By the name of the metric. */
  private readonly series = new Map<string, Series[]>();

  counter(name: string, help: string, labels: Labels = {}): Counter {
    const counter = new Counter();
    this.total(name, help, () => counter.value, labels);
    return counter;
  }

  /** A counter for each value of a label. */
  counters<Value extends string>(
    name: string,
    help: string,
    label: string,
    values: readonly Value[],
  ): Record<Value, Counter> {
    const counters = values.map((value) => [value, this.counter(name, help, { [label]: value })]);
    return Object.fromEntries(counters) as Record<Value, Counter>;
  }

  /** A counter for each value of a label; a value is known once it occurs. */
  countersBy(label: string, name: string, help: string): (value: string) => Counter {
    const counters = new Map<string, Counter>();
    this.countSeries(name, help, [label]);
    return (value) => {
      let counter = counters.get(value);
      if (!counter) counters.set(value, (counter = this.counter(name, help, { [label]: value })));
      return counter;
    };
  }

  /** A counter whose value is read at each scrape. */
  total(name: string, help: string, read: () => number, labels: Labels = {}): void {
    this.countSeries(name, help, Object.keys(labels)).push({ labels, read });
  }

  gauge(name: string, help: string, read: () => number, labels: Labels = {}): void {
    const series = this.seriesOf(name, (all) => {
      new Gauge({
        name,
        help,
        labelNames: Object.keys(labels),
        registers: [this.registry],
        collect() {
          for (const one of all) this.set(one.labels, one.read());
        },
      });
    });
    series.push({ labels, read });
  }

  private countSeries(name: string, help: string, labelNames: string[]): Series[] {
    return this.seriesOf(name, (all) => {
      new PromCounter({
        name,
        help,
        labelNames,
        registers: [this.registry],
        collect() {
          this.reset();
          for (const one of all) this.inc(one.labels, one.read());
        },
      });
    });
  }

  private seriesOf(name: string, register: (series: Series[]) => void): Series[] {
    let series = this.series.get(name);
    if (!series) {
      this.series.set(name, (series = []));
      register(series);
    }
    return series;
  }
}
