import {
  type ListStreams,
  LongResponse,
  PRIVATE_FILE,
  type RowsOrSlices,
} from '../../platform/output/list-streams';
import type { Dates } from '../../platform/formats/days';

export type Cell = string | number | boolean | null;

// Matches text that spreadsheets interpret as a formula, some also with the full-width forms of the signs. If
// the list
// separator is a semicolon, a cell also begins after each one, and its leading quotes are not part of its text.
const FORMULA = /(^|;)(?=[\s"]*[=+\-@＝＋－＠])/g;
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const NEEDS_QUOTES = /[",;]/;

/**
 * A cell in the format of RFC 4180. An apostrophe prevents a text from being a formula; control characters become
 * spaces.
 */
function formatCell(value: Cell): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const text = value.replace(CONTROLS, ' ').replace(FORMULA, "$1'");
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const MAX_TITLE = 60;

const formatLine = (cells: Cell[]) => `${cells.map(formatCell).join(',')}\r\n`;

// Without the byte order mark, spreadsheets don't recognize UTF-8.
const BYTE_ORDER_MARK = '\ufeff';

/** `sales-bright-harbor-2026-01-01-to-2026-01-31.csv`: named by content, game and dates. */
export function csvName(what: string, game?: { id: number; title: string }, dates?: Dates): string {
  const words = game?.title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim()
    .slice(0, MAX_TITLE)
    .trim();
  const title = game && (words ? words.replaceAll(' ', '-') : `game-${game.id}`);
  return `${[what, title, dates && `${dates.from}-to-${dates.to}`].filter(Boolean).join('-')}.csv`;
}

/** A table for a spreadsheet. */
export class CsvResponse<Row> extends LongResponse {
  constructor(
    { limit }: ListStreams,
    filename: string,
    columns: Record<string, (row: Row) => Cell>,
    rows: RowsOrSlices<Row>,
  ) {
    const headers = {
      ...PRIVATE_FILE,
      'Content-Type': 'text/csv; charset=utf-8; header=present',
      'Content-Disposition': `attachment; filename="${filename}"`,
    };
    super(limit, headers, generateLines(columns, rows));
  }
}

async function* generateLines<Row>(
  columns: Record<string, (row: Row) => Cell>,
  slices: RowsOrSlices<Row>,
): AsyncGenerator<string> {
  let text = BYTE_ORDER_MARK + formatLine(Object.keys(columns));
  const cells = Object.values(columns);
  for await (const rows of Array.isArray(slices) ? [slices] : slices) {
    yield text + rows.map((row) => formatLine(cells.map((cell) => cell(row)))).join('');
    text = '';
  }
  if (text !== '') yield text;
}
