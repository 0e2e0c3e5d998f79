import { formatMoney } from '../platform/formats/money';
import { bold } from './colors';
import { modernTimestamp } from '../platform/formats/timestamps';

// C0 and C1 control characters move the cursor or start terminal commands; the others reorder text or break lines.
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Text from the store for a terminal: control characters are shown as escapes. */
export const printable = (text: string): string =>
  text.replace(UNSAFE, (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`);

export function printTable(table: readonly (readonly string[])[], { heading = false } = {}): void {
  const rows = table.map((row) => row.map(printable));
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, i) => Math.max(widest[i] ?? 0, cell.length)),
    [],
  );
  for (const [i, row] of rows.entries()) {
    const line = row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd();
    console.log(heading && i === 0 ? bold(line) : line);
  }
}

type Cell = string | number | boolean | null | readonly string[] | { amount: number; currency: string };

/** Columns by heading. */
export type Columns<Row> = Record<string, (row: Row) => Cell>;

/** Prints a table with a column for each heading, or each row as a line of JSON. In a table, null is a dash. */
export function printRows<Row>(
  rows: readonly Row[],
  columns: Columns<Row>,
  { json = false }: { json?: boolean } = {},
): void {
  const named = Object.entries(columns);
  if (!json)
    return printTable(
      [
        named.map(([heading]) => heading),
        ...rows.map((row) => named.map(([, cell]) => formatCell(cell(row)))),
      ],
      { heading: true },
    );
  for (const row of rows)
    console.log(
      JSON.stringify(
        Object.fromEntries(
          named.map(([heading, cell]) => [heading.toLowerCase().replaceAll(' ', '_'), cell(row)]),
        ),
      ),
    );
}

function formatCell(cell: Cell): string {
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  if (Array.isArray(cell)) return cell.join(' ') || '-';
  if (cell !== null && typeof cell === 'object' && 'amount' in cell)
    return formatMoney(cell.amount, cell.currency);
  return String(cell ?? '-');
}

/** A time as a table cell. */
export const formatTime = (timestamp: string | null) => timestamp && modernTimestamp(timestamp);
