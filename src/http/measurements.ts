export type Labels = Readonly<Record<string, string>>;

/** Its holder adds to `value` directly, without a lookup. */
export class Counter {
  value = 0;
}

export interface Family {
  readonly help: string;
  readonly type: 'counter' | 'gauge';
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

  /** One counter for each result. */
  results<Result extends string>(name: string, help: string, ...results: Result[]): Record<Result, Counter> {
    const counters = results.map((result) => [result, this.counter(name, help, { result })]);
    return Object.fromEntries(counters) as Record<Result, Counter>;
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
    if (!family) this.families.set(name, (family = { help, type, series: [] }));
    family.series.push({ labels, read });
  }
}
