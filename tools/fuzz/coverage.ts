/** Operations that need more than a single request, and are covered elsewhere. */
const COVERED_ELSEWHERE = [
  // These need a user's consent: test/api.
  'POST /oauth/token',
  'POST /oauth/device/poll',
  // These need a push in progress or a build with a patch: patches.ts and test/api.
  'POST /wharf/builds/{build_id}/files',
  'POST /wharf/builds/{build_id}/files/{file_id}',
  'GET /wharf/builds/{build_id}/files/{file_id}/download',
  'GET /builds/{build_id}/upgrade-paths/{target_build_id}',
  // These need an operator token, with which only the model of sales sends requests: test/operator.
  'POST /operator/users/{user_id}/link',
  'POST /operator/links',
];

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
        !COVERED_ELSEWHERE.includes(operation),
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
