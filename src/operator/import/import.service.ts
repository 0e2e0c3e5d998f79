import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { type Actor, may } from '../tokens/actor';
import { type Counts, type ImportSize, OperatorEvents } from '../tokens/operator-events';
import { fingerprintOf, type RetryKey } from '../../idempotency/stored-responses';
import { Settings } from '../../platform/config/settings';
import { MetricsRegistry } from '../../platform/observability/metrics-registry';
import type { Client } from '../../platform/limits/client-limits';
import { connectTo, type ImportOptions, importRecords } from './import-records';
import { importOnThread } from './import-thread';
import { ImportLimits } from './import-limits';
import { MAX_BYTES, readSmall } from './small-import';
import { SmallImports } from './small-imports.service';
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
  // Not AbortSignal.any: a signal that lives as long as the process would retain each of them until a garbage
  // collection.
  private readonly received = new Set<AbortController>();
  private readonly records: Counter;

  constructor(
    private readonly settings: Settings,
    private readonly keys: ApiKeysService,
    private readonly events: OperatorEvents,
    private readonly small: SmallImports,
    private readonly limits: ImportLimits,
    metrics: MetricsRegistry,
  ) {
    this.records = metrics.counter('gamewharf_import_records_total', 'Records of completed imports');
  }

  /** For a command: imports on this thread. */
  run(
    source: AsyncIterable<Buffer>,
    { signal: stopped, progress }: Pick<ImportOptions, 'signal' | 'progress'>,
  ): Promise<ImportSummary> {
    const signal = stopped ? AbortSignal.any([stopped, this.stopping.signal]) : this.stopping.signal;
    const options = { pepper: this.pepper, signal, progress };
    return this.counted(
      {},
      'large',
      importRecords(() => connectTo(this.settings), source, options),
    );
  }

  /** For a server: a small import shares a transaction with others, a large one has its own thread. */
  async receive(
    { source, length, client, broken }: Sent,
    by: Actor,
    key: RetryKey | undefined,
  ): Promise<ImportSummary> {
    const { signal } = broken;
    const mayImportCredentials = may(by, 'users');
    const large = (stream: AsyncIterable<Buffer>) => {
      const { DATABASE_URL } = this.settings;
      const work = () =>
        importOnThread({ DATABASE_URL, pepper: this.pepper, mayImportCredentials, key }, stream, signal);
      return this.counted(by, 'large', this.limits.oneAtATime(client, signal, work));
    };
    const smallOrLarge = async (stream: AsyncGenerator<Buffer>) => {
      const chunks: Buffer[] = [];
      const small = await readSmall(stream, chunks, this.small.types, mayImportCredentials, signal);
      if (!small) return large(replayed(chunks, stream));
      if (key) small.once = { key, fingerprint: fingerprintOf(key, ...chunks) };
      return this.counted(by, 'small', this.small.run(small, signal));
    };
    this.received.add(broken);
    if (this.stopping.signal.aborted) broken.abort();
    try {
      return await (length > MAX_BYTES
        ? large(source)
        : this.limits.whileBuffered(client, source, smallOrLarge));
    } finally {
      this.received.delete(broken);
    }
  }

  private get pepper(): Buffer {
    return Buffer.from(this.settings.API_KEY_PEPPER ?? '');
  }

  private async counted(by: Actor, size: ImportSize, work: Promise<ImportSummary>): Promise<ImportSummary> {
    const began = performance.now();
    const ended = (counts: ImportSummary | 'failed') =>
      this.events.imported(by, size, performance.now() - began, counts as Counts | 'failed');
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
      for (const { new: made, changed, unchanged, deleted = 0 } of Object.values(types))
        this.records.inc(made + changed + unchanged + deleted);
      return types;
    } catch (error) {
      ended('failed');
      throw error;
    }
  }

  onModuleDestroy(): void {
    this.stopping.abort();
    for (const broken of this.received) broken.abort();
  }
}

/** Keys end with their users and apps, too. */
const endsKeys = ({ api_keys, users, oauth_applications }: ImportSummary) =>
  Boolean(api_keys?.changed || api_keys?.deleted || users?.deleted || oauth_applications?.deleted);

/** The chunks that were already read, followed by the rest. */
async function* replayed(chunks: Buffer[], rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  for (let chunk = chunks.shift(); chunk; chunk = chunks.shift()) yield chunk;
  yield* rest;
}
