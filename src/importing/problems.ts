import { OperatorError } from '../config/operator-error';

/** How many problems are told one by one; the others are counted. */
const TOLD = 20;

/** The stream holds records that cannot be imported. Nothing was changed. */
export class ImportProblems extends OperatorError {
  constructor(readonly lines: string[]) {
    super(lines.join('\n'));
  }
}

export class Problems {
  count = 0;
  private told: { line: number; text: string }[] = [];

  add(line: number, text: string) {
    this.count++;
    // What is read comes in the order of its lines, so the first ones are the ones to tell.
    if (this.told.length < TOLD) this.told.push({ line, text });
  }

  /** What a check of all records found: its first lines, in order, and how many there are. */
  addFound(found: { line: number; text: string }[], count: number) {
    this.count += count;
    this.told = [...this.told, ...found].sort((a, b) => a.line - b.line).slice(0, TOLD);
  }

  throwIfAny() {
    if (!this.count) return;
    const lines = this.told.map(({ line, text }) => `line ${line}: ${text}`);
    const more = this.count - lines.length;
    if (more) lines.push(`and ${more} more problem${more === 1 ? '' : 's'}`);
    throw new ImportProblems(lines);
  }

  static get limit() {
    return TOLD;
  }
}

export const storeChanged = () =>
  new OperatorError(
    'The store was changed while the import ran, and nothing was imported: please try again.',
  );
