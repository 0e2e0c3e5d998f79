import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { oncePerKey } from '../../idempotency/stored-responses';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { queryOf } from '../../platform/database/pool/pipeline';
import { concernsOneStatement, faultOf } from '../../platform/database/sqlstates';
import type { Send } from '../../platform/database/relations';
import { statement, type Statement } from '../../platform/database/statement';
import { serviceUnavailable } from '../../platform/errors/api-error';
import { ConcurrencyLimit } from '../../platform/limits/concurrency-limit';
import { connectTo, isConflict } from './import-records';
import { pipelined } from './merge';
import { ImportProblems, Problems } from './problems';
import { recordTypes } from './record-types';
import { type Common, MAX_RECORDS, mergeSmall, SHORT_TRANSACTION, type SmallImport } from './small-import';
import type { ImportSummary } from './summary';

interface Waiting {
  small: SmallImport;
  signal: AbortSignal;
  since: number;
  resolve: (summary: ImportSummary) => void;
  reject: (error: unknown) => void;
}

// One is merged while another waits for the disk. With more concurrent transactions, each would contain fewer imports.
const MAX_TRANSACTIONS = 2;
export const MAX_WAITING = 2000;
export const MAX_WAITING_BYTES = 32 * 1024 * 1024;
export const MAX_WAIT_MS = 2000;
/** Imports that take long: one that runs, and the waiting ones. */
export const MAX_LONG = 100;
const MAX_ATTEMPTS = 6;
/** A response takes about 0.1 ms. */
const RESULTS_PER_TICK = 25;

/**
 * Queues small imports here, so that they don't wait on connections. Waiting ones share a transaction; if it fails,
 * they are retried separately.
 */
@Injectable()
export class SmallImports {
  readonly types;
  private readonly common: Common;
  /** First in, first out. */
  private readonly waiting = new Set<Waiting>();
  private bytes = 0;
  private transactions = 0;
  /** Imports that need their own connection. */
  private readonly long = new ConcurrencyLimit({ accepted: MAX_LONG, running: 1 });

  constructor(
    private readonly settings: Settings,
    private readonly database: Database,
    private readonly clock: Clock,
  ) {
    this.types = recordTypes(Buffer.from(settings.API_KEY_PEPPER ?? ''));
    const prepared = settings.DATABASE_PREPARED_STATEMENTS;
    this.common = { types: this.types, prepared, written: new Map() };
  }

  run(small: SmallImport, signal: AbortSignal): Promise<ImportSummary> {
    const since = this.clock.monotonic();
    const settled = (begin: (one: Waiting) => void) =>
      new Promise<ImportSummary>((resolve, reject) => begin({ small, signal, since, resolve, reject }));
    if (small.takesLong) {
      const waits = AbortSignal.any([signal, AbortSignal.timeout(MAX_WAIT_MS)]);
      return this.long.run(this.long.anyone, waits, () =>
        settled((one) => (this.isLate(one) ? endWaiting(one) : void this.commit([one]))),
      );
    }
    if (this.isFull(small)) this.rejectLate();
    if (this.isFull(small)) return Promise.reject(serviceUnavailable());
    return settled((one) => {
      this.waiting.add(one);
      this.bytes += small.bytes;
      this.startTransactions();
    });
  }

  private isFull({ bytes }: SmallImport): boolean {
    return this.waiting.size >= MAX_WAITING || this.bytes + bytes > MAX_WAITING_BYTES;
  }

  /** Also removes imports whose client disconnected. */
  private rejectLate(): void {
    const late = [...this.waiting].filter((one) => this.isLate(one));
    this.dequeue(late);
    void settleInBatches(late, endWaiting);
  }

  private isLate({ signal, since }: Waiting): boolean {
    return signal.aborted || this.clock.monotonic() - since > MAX_WAIT_MS;
  }

  private dequeue(some: Waiting[]): void {
    for (const one of some) {
      this.waiting.delete(one);
      this.bytes -= one.small.bytes;
    }
  }

  private startTransactions(): void {
    while (this.transactions < MAX_TRANSACTIONS && this.waiting.size > 0) {
      this.rejectLate();
      const together = nextOf(this.waiting);
      if (together.length === 0) return;
      this.dequeue(together);
      this.transactions++;
      void this.commit(together).finally(() => {
        this.transactions--;
        this.startTransactions();
      });
    }
  }

  /** Never rejects: each import is settled separately. */
  private async commit(together: Waiting[], attempt = 1): Promise<void> {
    const [first] = together as [Waiting];
    const problems = together.length === 1 ? first.small.problems.copy() : new Problems();
    try {
      const summaries = await this.merge(together, problems);
      await settleInBatches(together, ({ resolve }, index) => resolve(summaries[index]!));
    } catch (error) {
      if (together.length === 1) return this.retryOrReject(first, error, attempt);
      if (!concernsOneStatement(error) && !isConflict(error) && !(error instanceof ImportProblems))
        return settleInBatches(together, ({ reject }) => reject(error));
      // Those that waited too long for a lock would each wait for it again.
      const late: Waiting[] = [];
      for (const one of together)
        if (this.isLate(one)) late.push(one);
        else await this.commit([one]);
      await settleInBatches(late, endWaiting);
    }
  }

  private async retryOrReject(waiting: Waiting, error: unknown, attempt: number): Promise<void> {
    // A lock timeout, a deadlock, or a concurrent change.
    const mayPass = isConflict(error) || (concernsOneStatement(error) && faultOf(error) === 'unavailable');
    if (!mayPass) return waiting.reject(error);
    if (this.isLate(waiting) || attempt === MAX_ATTEMPTS) return waiting.reject(serviceUnavailable());
    await sleep(2 ** attempt * 5 * (0.5 + Math.random()));
    await this.commit([waiting], attempt + 1);
  }

  private async merge(together: Waiting[], problems: Problems): Promise<ImportSummary[]> {
    const imports = together.map(({ small }) => small);
    const { once, takesLong } = imports[0]!;
    const run = (common: Common) => (client: ClientBase) =>
      inTransaction(client, common.prepared, async (send, commit, begun) => {
        const merge = (end?: typeof commit) => mergeSmall(client, send, imports, problems, common, end);
        if (!once && !takesLong) return merge(commit);
        await begun;
        return once ? oncePerKey(client, once.key, once.fingerprint, () => merge()) : merge();
      });
    if (!takesLong) return this.database.connection(run(this.common));
    const client = await connectTo(this.settings, { pipeline: true });
    return run({ ...this.common, prepared: false })(client).finally(() => client.end());
  }
}

/** The imports that may share the next transaction. */
function nextOf(queue: Iterable<Waiting>): Waiting[] {
  const together: Waiting[] = [];
  let records = 0;
  for (const waiting of queue) {
    const { small } = waiting;
    if (together.length > 0 && (small.isAlone || records + small.records > MAX_RECORDS)) break;
    together.push(waiting);
    records += small.records;
    if (small.isAlone) break;
  }
  return together;
}

const endWaiting = ({ signal, reject }: Waiting) =>
  reject(signal.aborted ? signal.reason : serviceUnavailable());

/** Settles many imports, some in each tick of the event loop. */
async function settleInBatches(
  all: Waiting[],
  settle: (waiting: Waiting, index: number) => void,
): Promise<void> {
  for (const [index, waiting] of all.entries()) {
    if (index > 0 && index % RESULTS_PER_TICK === 0) await immediate();
    settle(waiting, index);
  }
}

const BEGIN = statement('begin', 'BEGIN');
const COMMIT = statement('commit', 'COMMIT');

/** The first statements of `work` are sent together with BEGIN, and the last ones with COMMIT if it calls `commit`. */
async function inTransaction<Result>(
  client: ClientBase,
  prepared: boolean,
  work: (send: Send, commit: () => Promise<unknown>, begun: Promise<unknown>) => Promise<Result>,
): Promise<Result> {
  let failure: Error | undefined;
  // After a ROLLBACK a statement would run outside the transaction.
  const send: Send = (query) => (failure ? Promise.reject(failure) : client.query(query));
  const control = (one: Statement) => send(queryOf(one, [], prepared));
  let committed: Promise<unknown> | undefined;
  const commit = () => (committed ??= control(COMMIT));
  try {
    const begun = Promise.all([control(BEGIN), control(SHORT_TRANSACTION)]);
    const result = await pipelined(begun, work(send, commit, begun));
    await commit();
    return result;
  } catch (error) {
    failure = error as Error;
    // Fails on a lost connection, for which the server rolls back on its own.
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}
