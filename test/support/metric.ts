import { MetricsRegistry } from '../../src/platform/observability/metrics-registry';
import { theApp } from './app';

/** The values of a metric of the tested service with these labels. */
export async function metric(name: string, labels: Record<string, string> = {}) {
  const { values } = await theApp().get(MetricsRegistry).registry.getSingleMetric(name)!.get();
  return values.filter((one) =>
    Object.entries(labels).every(([label, value]) => one.labels[label] === value),
  );
}
