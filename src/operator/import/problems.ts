import { OperatorError } from '../../platform/errors/operator-error';

/** More problems than this are only counted. */
export const MAX_LISTED_PROBLEMS = 20;

/** The stream contains records that cannot be imported. Nothing was changed. */
export class ImportProblems extends OperatorError {
  constructor(readonly lines: string[]) {
    super(lines.join('\n'));
  }
}

export class Problems {
  count = 0;
  private listed: { line: number; text: string }[] = [];

  add(line: number, text: string) {
    this.count++;
    // Problems are added in the order of their lines.
    if (this.listed.length < MAX_LISTED_PROBLEMS) this.listed.push({ line, text });
  }

  /** The result of a check of all records: its first lines, in order, and their number. */
  addFound(found: { line: number; text: string }[], count: number) {
    this.count += count;
    this.listed = [...this.listed, ...found].sort((a, b) => a.line - b.line).slice(0, MAX_LISTED_PROBLEMS);
  }

  /** A copy, to which problems can be added without changing the original. */
  copy(): Problems {
    const copy = new Problems();
    copy.addFound(this.listed, this.count);
    return copy;
  }

  throwIfAny() {
    if (!this.count) return;
    const lines = this.listed.map(({ line, text }) => `line ${line}: ${text}`);
    const more = this.count - lines.length;
    if (more) lines.push(`and ${more} more problem${more === 1 ? '' : 's'}`);
    throw new ImportProblems(lines);
  }
}

/** A concurrent write changed what the checks found: a retry may succeed. */
export class StoreChanged extends OperatorError {
  constructor() {
    super('The store was changed while the import ran, and nothing was imported: please try again.');
  }
}
