import { modernTimestamp } from '../platform/formats/timestamps';

/** Prints rows in columns. */
export function printTable(rows: readonly (readonly string[])[]): void {
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, i) => Math.max(widest[i] ?? 0, cell.length)),
    [],
  );
  for (const row of rows)
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    );
}

/** A time as a cell of a table. */
export const timeOrDash = (timestamp: string | null) => (timestamp ? modernTimestamp(timestamp) : '-');
