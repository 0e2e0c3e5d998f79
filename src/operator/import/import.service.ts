import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { listPeppers } from '../../auth/keys/api-key';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { type Actor, may } from '../tokens/actor';
import { type Counts, OperatorEvents } from '../tokens/operator-events';
import type { RetryKey } from '../../idempotency/stored-responses';
import { Settings } from '../../platform/config/settings';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';
import type { Client } from '../../platform/limits/client-limits';
import {
  connectTo,
  type ImportOptions,
  type ImportQueue,
  importRecords,
  untilAborted,
} from './import-records';
import { ImportLimits } from './import-limits';
import { MAX_SMALL_BYTES, measure } from './import-size';
import { type ImportRequest, ImportThread } from './import-thread';
import type { ImportSummary } from './summary';

/** A request body. */
interface Sent {
  source: AsyncIterable<Buffer>;
  /** Content-Length; 0: none. */
  length: number;
  client: Client;
  /** Aborted if the client disconnects, or the process ends. */
  broken: AbortController;
}

@Injectable()
export class ImportService implements OnModuleDestroy {
  private readonly stopping = new AbortController();
  // AbortSignal.any isn't used, because a signal that exists as long as the process would retain each
  // combined signal until a garbage collection.
  private readonly running = new Map<AbortController, Promise<unknown>>();
  private readonly records: Counter;

  /** Small imports share a thread. A large one has its own, so that the memory is released with it. */
  private readonly small: ImportThread;

  constructor(
    private readonly settings: Settings,
    private readonly keys: ApiKeysService,
    private readonly events: OperatorEvents,
    private readonly limits: ImportLimits,
    metrics: MetricsRegistry,
  ) {
    this.records = metrics.counter('gamewharf_import_records_total', 'Records of completed imports');
    this.small = this.newThread();
  }

  /** Imports on this thread, for a command. */
  run(
    source: AsyncIterable<Buffer>,
    { signal: stopped, progress }: Pick<ImportOptions, 'signal' | 'progress'>,
  ): Promise<ImportSummary> {
    const signal = stopped ? AbortSignal.any([stopped, this.stopping.signal]) : this.stopping.signal;
    const options = { ...this.peppers, signal, progress };
    return this.counted(
      {},
      'large',
      importRecords(() => connectTo(this.settings), source, options),
    );
  }

  /** Imports on a separate thread, for a server. */
  async receive(
    { source, length, client, broken }: Sent,
    by: Actor,
    key: RetryKey | undefined,
  ): Promise<ImportSummary> {
    const { signal } = broken;
    const mayImportCredentials = may(by, 'users');
    const run = (queue: ImportQueue, stream: AsyncIterable<Buffer>) => {
      const work = () => this.onThread({ queue, mayImportCredentials, key }, stream, signal);
      return this.counted(by, queue, this.limits.run(queue, client, signal, work));
    };
    const smallOrLarge = async (received: AsyncGenerator<Buffer>) => {
      const { queue, stream } = await measure(untilAborted(received, signal));
      return run(queue, stream);
    };
    if (this.stopping.signal.aborted) broken.abort();
    const response =
      length > MAX_SMALL_BYTES
        ? run('large', source)
        : this.limits.whileBuffered(client, source, smallOrLarge);
    this.running.set(broken, response);
    try {
      return await response;
    } finally {
      this.running.delete(broken);
    }
  }

  private async onThread(
    request: ImportRequest,
    stream: AsyncIterable<Buffer>,
    signal: AbortSignal,
  ): Promise<ImportSummary> {
    if (request.queue === 'small') return this.small.run(request, stream, signal);
    const thread = this.newThread();
    try {
      return await thread.run(request, stream, signal);
    } finally {
      await thread.end();
    }
  }

  private newThread(): ImportThread {
    return new ImportThread({ DATABASE_URL: this.settings.DATABASE_URL, ...this.peppers });
  }

  private get peppers(): { pepper: Buffer; previousPeppers: string[] } {
    const [pepper = '', ...previousPeppers] = listPeppers(this.settings);
    return { pepper: Buffer.from(pepper), previousPeppers };
  }

  private async counted(by: Actor, queue: ImportQueue, work: Promise<ImportSummary>): Promise<ImportSummary> {
    const began = performance.now();
    const ended = (counts: ImportSummary | 'failed') =>
      this.events.imported(by, queue, performance.now() - began, counts as Counts | 'failed');
    try {
      const types = await work;
      ended(types);
      const deletions = Object.entries(types).flatMap(([type, { deleted }]) =>
        deleted ? [[type, deleted] as const] : [],
      );
      if (deletions.length > 0)
        this.events.record('records.deleted', by, { counts: Object.fromEntries(deletions) });
      // This replica must not use cached keys that the import revoked; others notice within a second.
      if (endsKeys(types)) this.keys.forgetAll();
      for (const { new: created, changed, unchanged, deleted = 0 } of Object.values(types))
        this.records.inc(created + changed + unchanged + deleted);
      return types;
    } catch (error) {
      ended('failed');
      throw error;
    }
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    for (const broken of this.running.keys()) broken.abort();
    await Promise.allSettled(this.running.values());
    await this.small.end();
  }
}

/** API keys also stop working when their users or apps are deleted. */
const endsKeys = ({ api_keys, users, oauth_applications }: ImportSummary) =>
  Boolean(api_keys?.changed || api_keys?.deleted || users?.deleted || oauth_applications?.deleted);
