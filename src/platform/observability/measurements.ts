type Labels = Readonly<Record<string, string>>;

/** Its holder adds to `value` directly, without a lookup. */
export class Counter {
  value = 0;
}

export interface Family {
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly labels: string[];
  readonly series: { readonly labels: Labels; readonly read: () => number }[];
}

/** The registry of metrics. */
export class Measurements {
  readonly families = new Map<string, Family>();

  counter(name: string, help: string, labels: Labels = {}): Counter {
    const counter = new Counter();
    this.add(name, help, 'counter', labels, () => counter.value);
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
    this.families.set(name, { help, type: 'counter', labels: [label], series: [] });
    return (value) => {
      let counter = counters.get(value);
      if (!counter) counters.set(value, (counter = this.counter(name, help, { [label]: value })));
      return counter;
    };
  }

  /** A counter whose value is read at each scrape. */
  total(name: string, help: string, read: () => number, labels: Labels = {}): void {
    this.add(name, help, 'counter', labels, read);
  }

  gauge(name: string, help: string, read: () => number, labels: Labels = {}): void {
    this.add(name, help, 'gauge', labels, read);
  }

  private add(name: string, help: string, type: Family['type'], labels: Labels, read: () => number): void {
    let family = this.families.get(name);
    if (!family) this.families.set(name, (family = { help, type, labels: Object.keys(labels), series: [] }));
    family.series.push({ labels, read });
  }
}
