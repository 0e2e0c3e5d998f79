import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { ApiKeysService } from '../auth/api-keys.service';
import { type By, type Counts, type ImportSize, may, OperatorEvents } from '../auth/operator-events';
import { Settings } from '../config/settings';
import { type Counter, Measurements } from '../http/measurements';
import { connectTo, type ImportOptions, importRecords } from './import-records';
import { importOnThread } from './import-thread';
import type { ImportSummary } from './summary';

// A shorter stream takes less time than starting a thread.
const MIN_THREAD_BYTES = 16 * 1024;
/** In the metrics, a larger import is a large one. */
const SMALL_BYTES = 1024 * 1024;

@Injectable()
export class ImportService implements OnModuleDestroy {
  private readonly stopping = new AbortController();
  private readonly records: Counter;

  constructor(
    private readonly settings: Settings,
    private readonly keys: ApiKeysService,
    private readonly events: OperatorEvents,
    measurements: Measurements,
  ) {
    this.records = measurements.counter(
      'gamewharf_import_records_total',
      'Records of imports that were done',
    );
  }

  /** On this thread, for a command. */
  run(
    source: AsyncIterable<Buffer>,
    { signal, progress }: Pick<ImportOptions, 'signal' | 'progress'>,
    by: By = {},
    size: ImportSize = 'large',
  ): Promise<ImportSummary> {
    return this.counted(
      by,
      size,
      importRecords(() => connectTo(this.settings), source, {
        pepper: this.pepper,
        mayLetIn: may(by, 'users'),
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
    by: By,
  ): Promise<ImportSummary> {
    const size = bytes !== undefined && bytes <= SMALL_BYTES ? 'small' : 'large';
    if (bytes !== undefined && bytes <= MIN_THREAD_BYTES) return this.run(source, { signal }, by, size);
    const { DATABASE_URL } = this.settings;
    const settings = { DATABASE_URL, pepper: this.pepper, mayLetIn: may(by, 'users') };
    return this.counted(by, size, importOnThread(settings, source, this.withStop(signal)));
  }

  private get pepper(): Buffer {
    return Buffer.from(this.settings.API_KEY_PEPPER ?? '');
  }

  private withStop(signal: AbortSignal | undefined): AbortSignal {
    return signal ? AbortSignal.any([signal, this.stopping.signal]) : this.stopping.signal;
  }

  private async counted(by: By, size: ImportSize, work: Promise<ImportSummary>): Promise<ImportSummary> {
    const began = performance.now();
    const ended = (counts: ImportSummary | 'failed') =>
      this.events.imported(by, size, performance.now() - began, counts as Counts | 'failed');
    try {
      const types = await work;
      ended(types);
      // This replica must not use cached keys that the import revoked; others notice within a second.
      if (endsKeys(types)) this.keys.forget();
      for (const { new: made, changed, unchanged, deleted = 0 } of Object.values(types))
        this.records.value += made + changed + unchanged + deleted;
      return types;
    } catch (error) {
      ended('failed');
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
