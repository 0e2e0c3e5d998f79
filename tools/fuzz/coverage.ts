/** They succeed only after a user's consent, which test/api covers. */
const AFTER_CONSENT = ['POST /oauth/token', 'POST /oauth/device/poll'];

/** Downloads succeed with a redirect. */
const SUCCESSES = [200, 302];

/** How often each operation returned which status. */
export class Coverage {
  private readonly counts = new Map<string, Map<number, number>>();

  constructor(private readonly operations: string[]) {
    for (const operation of operations) this.counts.set(operation, new Map());
  }

  count(operation: string, status: number): void {
    const counts = this.counts.get(operation);
    if (counts) counts.set(status, (counts.get(status) ?? 0) + 1);
    else this.counts.set(operation, new Map([[status, 1]]));
  }

  /** Operations of the description without a successful request. */
  get unreached(): string[] {
    return this.operations.filter(
      (operation) =>
        !SUCCESSES.some((status) => this.counts.get(operation)!.has(status)) &&
        !AFTER_CONSENT.includes(operation),
    );
  }

  get table(): string {
    const rows = [...this.counts].sort(([a], [b]) => (a < b ? -1 : 1));
    const width = Math.max(...rows.map(([operation]) => operation.length));
    return rows
      .map(([operation, counts]) => {
        const statuses = [...counts]
          .sort(([a], [b]) => a - b)
          .map(([status, count]) => `${status}: ${count}`);
        return `${operation.padEnd(width)}  ${statuses.join('  ')}`;
      })
      .join('\n');
  }
}
