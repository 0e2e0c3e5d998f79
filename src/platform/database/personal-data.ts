/** A row of docs/explanation/privacy.md. */
interface StoredColumnsRow {
  columns: string[];
  why: string;
  for_how_long: string;
  /** What an erasure does with them. Absent: they aren't about a person. */
  after_erasure?: string;
}

/** How to export and erase the rows of an account in this table. */
export interface PersonalRows {
  /** The `type` of the lines in an export. */
  type: string;
  /** SQL condition: the rows `t` of the account $user_id. */
  where?: string;
  /** SQL that replaces or adds a column of `t`, by its name; null omits the column. Hashes are always omitted. */
  columns?: Record<string, string | null>;
  /** Set for a table with long texts, so that fewer rows are in memory at once. */
  has_long_texts?: boolean;
  /** `delete`: an erasure deletes the rows. Absent: the erasure has separate statements for them, or cascades. */
  erasure?: 'delete';
}

type Class = abstract new (...parameters: never[]) => object;

const stored = new Map<Class, StoredColumnsRow[]>();
const personal = new Map<Class, PersonalRows>();

/** Declares what each column of an entity is for. Every column must be in one row. */
export const StoredColumns =
  (...rows: StoredColumnsRow[]) =>
  (entity: Class): void =>
    void stored.set(entity, rows);

/** Declares that the rows of an entity belong to an account: exports contain them, and erasures delete them. */
export const PersonalData =
  (rows: PersonalRows) =>
  (entity: Class): void =>
    void personal.set(entity, rows);

export const storedColumns = (entity: unknown): StoredColumnsRow[] => stored.get(entity as Class) ?? [];

export const personalRows = (entity: unknown): PersonalRows | undefined => personal.get(entity as Class);
