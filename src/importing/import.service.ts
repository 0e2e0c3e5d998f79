import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { ApiKeysService } from '../auth/api-keys.service';
import { Settings } from '../config/settings';
import { type Counter, Measurements } from '../http/measurements';
import { connectTo, type ImportOptions, importRecords, type ImportSummary } from './import-records';
import { importOnThread } from './import-thread';

// Done in a few milliseconds, in which no thread would have started.
const SHORT_BYTES = 16 * 1024;

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

  /** For a process that does nothing else. */
  run(
    source: AsyncIterable<Buffer>,
    { signal, progress }: Pick<ImportOptions, 'signal' | 'progress'>,
  ): Promise<ImportSummary> {
    return this.counted(
      importRecords(() => connectTo(this.settings), source, {
        pepper: this.pepper,
        signal: this.withStop(signal),
        progress,
      }),
    );
  }

  /** For a process that answers requests meanwhile. */
  receive(
    source: AsyncIterable<Buffer>,
    bytes: number | undefined,
    signal: AbortSignal,
  ): Promise<ImportSummary> {
    if (bytes !== undefined && bytes <= SHORT_BYTES) return this.run(source, { signal });
    const { DATABASE_URL } = this.settings;
    return this.counted(importOnThread({ DATABASE_URL, pepper: this.pepper }, source, this.withStop(signal)));
  }

  private get pepper(): Buffer {
    return Buffer.from(this.settings.API_KEY_PEPPER ?? '');
  }

  private withStop(signal: AbortSignal | undefined): AbortSignal {
    return signal ? AbortSignal.any([signal, this.stopping.signal]) : this.stopping.signal;
  }

  private async counted(work: Promise<ImportSummary>): Promise<ImportSummary> {
    try {
      const types = await work;
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
