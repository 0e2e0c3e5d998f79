import { modernTimestamp } from '../platform/formats/timestamps';

// C0 and C1 control characters move the cursor or start terminal commands; the others reorder text or break lines.
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Text from the store for a terminal: control characters are shown as escapes. */
export const printable = (text: string): string =>
  text.replace(UNSAFE, (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`);

/** Prints rows in columns. */
export function printTable(table: readonly (readonly string[])[]): void {
  const rows = table.map((row) => row.map(printable));
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

type Cell = string | number | boolean | null;

/** Prints a table with a column for each heading. Null is a dash. */
export const printRows = <Row>(rows: readonly Row[], columns: Record<string, (row: Row) => Cell>): void =>
  printTable([
    Object.keys(columns),
    ...rows.map((row) => Object.values(columns).map((cell) => textOf(cell(row)))),
  ]);

const textOf = (cell: Cell) => (typeof cell === 'boolean' ? (cell ? 'yes' : 'no') : String(cell ?? '-'));

/** A time as a table cell. */
export const formatTime = (timestamp: string | null) => timestamp && modernTimestamp(timestamp);
