import { Injectable } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';
import { Audit, type AuditEvent } from '../../audit/audit';
import type { Actor } from './actor';

/** Counts are numbers, so they contain no personal data. */
export type Counts = Record<string, number | Record<string, number>>;

type ImportSize = 'small' | 'large';

/** Records the actions of operators and their programs as audit events and metrics. Call it after the commit. */
@Injectable()
export class OperatorEvents {
  private readonly sales: Counter<'currency'>;
  private readonly refunds: Counter<'currency'>;
  private readonly imports: Counter<'size' | 'outcome'>;
  private readonly importSeconds: Counter<'size' | 'outcome'>;

  constructor(
    private readonly audit: Audit,
    metrics: MetricsRegistry,
  ) {
    const byCurrency = { currency: [] };
    this.sales = metrics.counter('gamewharf_sales_total', 'Sales through requests and commands', byCurrency);
    this.refunds = metrics.counter('gamewharf_refunds_total', 'Refunded purchases', byCurrency);
    const ofImports = { size: ['small', 'large'], outcome: ['done', 'failed'] };
    this.imports = metrics.counter('gamewharf_imports_total', 'Finished imports', ofImports);
    this.importSeconds = metrics.counter(
      'gamewharf_import_seconds_total',
      'Total duration of finished imports',
      ofImports,
    );
  }

  sold(by: Actor, currency: string, counts: Counts): void {
    this.sales.inc({ currency });
    this.record('purchase.created', by, { counts, currency });
  }

  refunded(by: Actor, currency: string, counts: Counts): void {
    this.refunds.inc({ currency });
    this.record('purchase.refunded', by, { counts, currency });
  }

  /** `counts`: by record type, for the completed import. */
  imported(by: Actor, size: ImportSize, milliseconds: number, counts: Counts | 'failed'): void {
    const labels = { size, outcome: counts === 'failed' ? 'failed' : 'done' };
    this.imports.inc(labels);
    this.importSeconds.inc(labels, milliseconds / 1000);
    if (counts !== 'failed') this.record('import.completed', by, { counts });
  }

  /** An event that no metric counts, or that is already counted. */
  record(
    event: AuditEvent['event'],
    { operator, request_id, user_id }: Actor,
    details: { counts: Counts; currency?: string; user_id?: number },
  ): void {
    this.audit.record({ event, operator, request_id, user_id, ...details });
  }
}
