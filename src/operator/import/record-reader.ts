import { closest, distance } from 'fastest-levenshtein';
import type { Line } from './ndjson';
import { type Cells, isId, NULL, type Reject, shown } from './value-types';
import type { Problems } from './problems';
import { PREVIOUS_HASHES } from './record-types/api-key';
import { COLLECTION_RECORD, IMPORTED_ENTRIES, ENTRY_FIELDS } from './record-types/collection';
import { type Field, type JsonObject, presenceBit } from './record-types/fields';
import { PURCHASE_RECORD } from './record-types/purchase';
import type { RecordType } from './record-types/record-type';
import { USER_RECORD } from './record-types/user';
import { hasRepeatedName } from './repeated-names';
import { REJECTED_IDS, type StagedRow, type Staging } from './staging';

/** A user to stage once the password is hashed. */
export interface WithPassword {
  row: StagedRow;
  user_id: number;
  password: string;
}

/** Longer names are not compared with the known ones. */
const MAX_COMPARED = 40;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Rejects a record that would let the client act as a user, unless the token also has the permission `users`. */
function credentialFields({ name }: RecordType, { password, password_hash }: JsonObject): string[] {
  const problem = 'operator token does not permit `users`';
  if (name === 'api_key' || name === 'oauth_application') return [problem];
  if (name !== 'user') return [];
  // Null removes a password.
  if (password !== undefined) return [`password: ${problem}`];
  return password_hash !== undefined ? [`password_hash: ${problem}`] : [];
}

/** Parses lines, stages their records, and reports problems. */
export class RecordReader {
  /** Records without problems. */
  records = 0;
  readonly withPassword: WithPassword[] = [];
  /** Types with a record that omits required fields. */
  readonly partial = new Set<RecordType>();
  private readonly types: Map<string, RecordType>;
  private problemsOfRecord: string[] = [];
  /** The list entry and the field being read. */
  private entry = '';
  private field = '';
  private readonly reject: Reject = (why, at = '') => {
    this.problemsOfRecord.push(`${this.entry}${this.field}${at} ${why}`);
    return '';
  };

  constructor(
    types: RecordType[],
    private readonly staging: Pick<Staging, 'stage'>,
    private readonly problems: Problems,
    private readonly mayImportCredentials = true,
  ) {
    this.types = new Map(types.map((type) => [type.name, type]));
  }

  read({ number: line, text, problem }: Line): void {
    if (problem) return this.problems.add(line, problem);
    let record: unknown;
    try {
      record = JSON.parse(text);
    } catch {
      return text.trim() === '' ? undefined : this.problems.add(line, 'is not valid JSON');
    }
    if (!isObject(record)) return this.problems.add(line, 'is not a JSON object');
    const type = this.types.get(record.type as string);
    if (type) return this.readRecord(type, record, line, hasRepeatedName(text, record));
    const { type: name } = record;
    if (name === undefined) return this.problems.add(line, 'type is required');
    // String() may throw for a list or an object.
    const isText = typeof name !== 'object' || name === null;
    this.problems.add(
      line,
      isText
        ? `unknown type ${shown(String(name))}${meant(String(name), [...this.types.keys()])}`
        : 'type must be a text',
    );
  }

  private readRecord(type: RecordType, record: JsonObject, line: number, isAmbiguous: boolean): void {
    this.problemsOfRecord = this.mayImportCredentials ? [] : credentialFields(type, record);
    if (isAmbiguous) this.problemsOfRecord.push('contains a field twice');
    const { deleted } = record;
    if (deleted === true) return this.readDeleted(type, record, line);
    if (deleted !== undefined && deleted !== null) this.problemsOfRecord.push('deleted must be true');
    const { present, cells, isPartial } = this.encode(
      type.fields,
      record,
      deleted === undefined ? ['type'] : ['type', 'deleted'],
      record[type.fields[0]!.name] != null || (type === PURCHASE_RECORD && record.reference != null),
    );
    if (isPartial) this.partial.add(type);
    type.compare?.(record, (problem) => this.problemsOfRecord.push(problem));
    const entries = type === COLLECTION_RECORD && isId(record.id) ? this.readEntries(record) : [];

    const row = [line, present, ...cells];
    if (this.isRejected(type, record, line)) {
      // Whether absent fields are required is known only after a lookup, which needs a valid key.
      if (isPartial && (record[type.fields[0]!.name] == null || cells[0] !== NULL))
        this.staging.stage(type.records, row);
      return;
    }
    this.records++;
    this.stagePreviousHashes(type, record, cells[0]!);
    entries.forEach((entry, index) =>
      this.staging.stage(IMPORTED_ENTRIES, [
        line,
        record.id as number,
        index + 1,
        entry.present,
        ...entry.cells,
      ]),
    );
    if (type === USER_RECORD && typeof record.password === 'string')
      this.withPassword.push({ row, user_id: record.id as number, password: record.password });
    else this.staging.stage(type.records, row);
  }

  private encode(fields: Field[], record: JsonObject, otherNames: string[] = [], mayBePartial = false) {
    let present = 0;
    let isPartial = false;
    let names = otherNames.length;
    const cells: string[] = [];
    for (let place = 0; place < fields.length; place++) {
      const field = fields[place]!;
      let value = record[field.name];
      if (value !== undefined) names++;
      if (field.implied && value == null) {
        const implied = field.implied(record);
        if (implied !== undefined) value = implied;
      }
      this.field = field.name;
      let cell: Cells = field.default;
      if (value === undefined || value === null) {
        if (value === null && !field.now) present += presenceBit(place);
        if (field.required) {
          if (value === undefined && (mayBePartial || isReplaced(field, record))) isPartial = true;
          else this.reject('is required');
        }
      } else {
        present += presenceBit(place);
        const problems = this.problemsOfRecord.length;
        cell = field.valueType.encode(value, this.reject);
        if (this.problemsOfRecord.length > problems) cell = field.columns.map(() => NULL);
      }
      if (typeof cell !== 'string') cells.push(...cell);
      else if (field.columns.length > 0) cells.push(cell);
    }
    const fieldNames = Object.keys(record);
    if (fieldNames.length !== names) {
      for (const name of fieldNames) {
        if (otherNames.includes(name)) continue;
        if (!fields.some((field) => field.name === name)) {
          this.problemsOfRecord.push(
            `unknown field ${this.entry}${shown(name)}${meant(
              name,
              fields.map((field) => field.name),
            )}`,
          );
        }
      }
    }
    return { present, cells, isPartial };
  }

  private readDeleted(type: RecordType, record: JsonObject, line: number): void {
    const { name: key, valueType } = type.fields[0]!;
    const value = record[key];
    this.field = key;
    const cells = value == null ? this.reject('is required') : valueType.encode(value, this.reject);
    // The first column is the key itself.
    const cell = typeof cells === 'string' ? cells : cells[0]!;
    for (const name of Object.keys(record)) {
      if (![key, 'type', 'deleted'].includes(name))
        this.problemsOfRecord.push(`${shown(name)} must be absent where deleted is true`);
    }
    if (this.isRejected(type, record, line)) return;
    this.stagePreviousHashes(type, record, cell);
    this.staging.stage(type.deleted, [line, cell]);
  }

  private stagePreviousHashes({ previousHashes }: RecordType, { key }: JsonObject, hash: string): void {
    for (const previous of previousHashes?.(key as string) ?? [])
      this.staging.stage(PREVIOUS_HASHES, [hash, previous]);
  }

  /** Reports the problems of the record that was read. */
  private isRejected(type: RecordType, record: JsonObject, line: number): boolean {
    for (const problem of this.problemsOfRecord)
      this.problems.add(line, `${describeRecord(type, record)}: ${problem}`);
    if (!this.problemsOfRecord.length) return false;
    if (isId(record.id)) this.staging.stage(REJECTED_IDS, [type.name, record.id]);
    return true;
  }

  private readEntries(collection: JsonObject) {
    const games = collection.games ?? [];
    if (!Array.isArray(games)) return [];
    const seen = new Set<unknown>();
    const entries = games.map((entry: unknown, index) => {
      this.entry = `games[${index}].`;
      if (!isObject(entry)) {
        this.problemsOfRecord.push(`games[${index}] must be an object`);
        return { present: 0, cells: [] as string[] };
      }
      if (seen.has(entry.game_id)) this.problemsOfRecord.push(`games[${index}].game_id is in the list twice`);
      seen.add(entry.game_id);
      return this.encode(ENTRY_FIELDS, entry);
    });
    this.entry = '';
    return entries;
  }
}

const isReplaced = ({ instead }: Field, record: JsonObject) =>
  instead !== undefined && record[instead] != null;

/** The known name that was probably meant: at most two characters, and at most half of them, differ. */
function meant(name: string, known: readonly string[]): string {
  if (name.length > MAX_COMPARED) return '';
  const found = closest(name.toLowerCase(), known);
  const differing = distance(name.toLowerCase(), found);
  return differing <= 2 && 2 * differing <= name.length ? `: did you mean \`${found}\`?` : '';
}

/** The record in a message, such as `game 7`. */
function describeRecord({ name, key, fields }: RecordType, record: JsonObject) {
  const value = record[key];
  if (key === 'id') return isId(value) ? `${name} ${value}` : name;
  return key === fields[0]!.name && typeof value === 'string' ? `${name} ${shown(value)}` : name;
}
