import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { ApiKeysService } from '../auth/api-keys.service';
import { Settings } from '../config/settings';
import { type Counter, Measurements } from '../http/measurements';
import { connectTo, type ImportOptions, importRecords, type ImportSummary } from './import-records';

@Injectable()
export class ImportService implements OnModuleDestroy {
  private readonly stopping = new AbortController();

  private readonly outcomes: Record<'done' | 'failed', Counter>;
  private readonly records: Counter;

  constructor(
    private readonly settings: Settings,
    private readonly keys: ApiKeysService,
    measurements: Measurements,
  ) {
    const counter = (outcome: string) =>
      measurements.counter('gamewharf_imports_total', 'Imports that ended', { outcome });
    this.outcomes = { done: counter('done'), failed: counter('failed') };
    this.records = measurements.counter(
      'gamewharf_import_records_total',
      'Records of imports that were done',
    );
  }

  async run(
    source: AsyncIterable<Buffer>,
    { signal, progress }: Pick<ImportOptions, 'signal' | 'progress'>,
  ): Promise<ImportSummary> {
    try {
      const types = await importRecords(() => connectTo(this.settings), source, {
        pepper: Buffer.from(this.settings.API_KEY_PEPPER ?? ''),
        signal: signal ? AbortSignal.any([signal, this.stopping.signal]) : this.stopping.signal,
        progress,
      });
      this.outcomes.done.value++;
      // Other replicas see it within a second; whoever asks this one next must not meet a key that was revoked.
      if (types.api_keys?.changed) this.keys.forget();
      for (const { new: made, changed, unchanged } of Object.values(types))
        this.records.value += made + changed + unchanged;
      return types;
    } catch (error) {
      this.outcomes.failed.value++;
      throw error;
    }
  }

  onModuleDestroy(): void {
    this.stopping.abort();
  }
}
