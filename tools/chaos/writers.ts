import { setTimeout as sleep } from 'node:timers/promises';
import { ask, keptConnections } from './ask';
import { query } from './postgres';

export interface WriteReport {
  acknowledged: number;
  /** Writes that were acknowledged but aren't in the database. */
  lost: number;
  /** Seconds from the start of the writers to the first and the last acknowledgement of a lost write. */
  lostAt: number[];
  /** Rows that are in the database more than once. */
  doubled: number;
  retries: number;
  /** Responses that no retry would change. */
  rejected: string[];
}

const PATIENCE = 5000;
const RETRY_AFTER = 100;

/**
 * Writers that record what was acknowledged: each creates one collection after another and retries until it gets a
 * response.
 */
export class Writers {
  private readonly begun = performance.now();
  /** Titles, and when each was acknowledged. */
  private readonly acknowledged = new Map<string, number>();
  private readonly rejected: string[] = [];
  private retries = 0;
  private over = false;
  private readonly all: Promise<void>[];

  constructor(
    private readonly url: () => string,
    keys: string[],
    private readonly how: { name: string; idempotent: boolean },
  ) {
    this.all = keys.map((key, writer) => this.write(key, `${how.name}-${writer}`));
  }

  get count(): number {
    return this.acknowledged.size;
  }

  /** Lets each writer finish its current write. */
  async stop(): Promise<void> {
    this.over = true;
    await Promise.all(this.all);
  }

  /** Compares the records with the database. */
  async compare(database: string): Promise<WriteReport> {
    const rows = await query<{ title: string; copies: number }>(
      database,
      `SELECT title, count(*)::int AS copies FROM collections WHERE starts_with(title, $1) GROUP BY title`,
      [`${this.how.name}-`],
    );
    const copies = new Map(rows.map(({ title, copies }) => [title, copies]));
    const lost = [...this.acknowledged].filter(([title]) => !copies.has(title)).map(([, at]) => at);
    return {
      acknowledged: this.acknowledged.size,
      lost: lost.length,
      lostAt: lost.length > 0 ? [Math.min(...lost), Math.max(...lost)] : [],
      doubled: rows.filter(({ copies }) => copies > 1).length,
      retries: this.retries,
      rejected: this.rejected,
    };
  }

  private async write(key: string, writer: string): Promise<void> {
    const agent = keptConnections(1);
    for (let n = 0; !this.over; n++) {
      const title = `${writer}-${n}`;
      const headers = this.how.idempotent ? { 'idempotency-key': title } : undefined;
      for (const begun = performance.now(); ; this.retries++) {
        const response = await ask(`${this.url()}/collections`, {
          method: 'POST',
          key,
          form: { title },
          headers,
          agent,
          timeout: PATIENCE,
        }).catch(() => undefined);
        if (response?.status === 200) this.acknowledged.set(title, (performance.now() - this.begun) / 1000);
        else if (response && response.status !== 503)
          this.rejected.push(`${response.status} ${response.body}`);
        if (response && response.status !== 503) break;
        // At the end no request may be left without a response.
        if (this.over && performance.now() - begun > 2 * PATIENCE) break;
        await sleep(RETRY_AFTER);
      }
    }
    agent.destroy();
  }
}

export const listViolations = ({ lost, lostAt, doubled, rejected }: WriteReport): string[] => [
  ...(lost > 0
    ? [`${lost} acknowledged writes lost, after ${lostAt.map((at) => at.toFixed(1)).join(' to ')} s`]
    : []),
  ...(doubled > 0 ? [`${doubled} writes doubled`] : []),
  ...(rejected.length > 0 ? [`rejected: ${rejected[0]}`] : []),
];
