import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Settings } from '../config/settings';
import { connectTo, type ImportOptions, importRecords, type ImportSummary } from './import-records';

@Injectable()
export class ImportService implements OnModuleDestroy {
  private readonly stopping = new AbortController();

  constructor(private readonly settings: Settings) {}

  run(
    source: AsyncIterable<Buffer>,
    { signal, progress }: Pick<ImportOptions, 'signal' | 'progress'>,
  ): Promise<ImportSummary> {
    return importRecords(() => connectTo(this.settings), source, {
      pepper: Buffer.from(this.settings.API_KEY_PEPPER ?? ''),
      signal: signal ? AbortSignal.any([signal, this.stopping.signal]) : this.stopping.signal,
      progress,
    });
  }

  onModuleDestroy(): void {
    this.stopping.abort();
  }
}
