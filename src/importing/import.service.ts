import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { ApiKeysService } from '../auth/api-keys.service';
import { Settings } from '../config/settings';
import { type Counter, Measurements } from '../http/measurements';
import { connectTo, type ImportOptions, importRecords } from './import-records';
import { importOnThread } from './import-thread';
import type { ImportSummary } from './summary';

// A shorter stream takes less time than starting a thread.
const MIN_THREAD_BYTES = 16 * 1024;

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

  /** On this thread, for a command. */
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

  /** On a thread of its own unless it is short, for a server. */
  receive(
    source: AsyncIterable<Buffer>,
    bytes: number | undefined,
    signal: AbortSignal,
  ): Promise<ImportSummary> {
    if (bytes !== undefined && bytes <= MIN_THREAD_BYTES) return this.run(source, { signal });
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
      // This replica must not use cached keys that the import revoked; others notice within a second.
      if (endsKeys(types)) this.keys.forget();
      for (const { new: made, changed, unchanged, deleted = 0 } of Object.values(types))
        this.records.value += made + changed + unchanged + deleted;
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

/** Keys end with their users and applications, too. */
const endsKeys = ({ api_keys, users, oauth_applications }: ImportSummary) =>
  Boolean(api_keys?.changed || api_keys?.deleted || users?.deleted || oauth_applications?.deleted);
