import type { Line } from './ndjson';
import { isId, type Refuse, shown } from './kinds';
import type { Problems } from './problems';
import { ENTRY_FIELDS, type Field, type JsonObject, type RecordType } from './record-types';
import type { Staging } from './staging';

interface StagedRecord {
  type: RecordType;
  line: number;
  present: number;
  cells: string[];
}

export interface ReadRecord {
  row: StagedRecord;
  record: JsonObject;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const keyOf = ({ key, fields }: RecordType) => fields.find(({ columns }) => columns[0]!.name === key)!;

/** Refuses a record that lets somebody act for a user: it needs the right `users` as well. */
function lettingIn({ name }: RecordType, { password }: JsonObject): string[] {
  const refusal = 'operator token does not permit `users`';
  if (name === 'api_key' || name === 'oauth_application') return [refusal];
  return name === 'user' && password !== undefined ? [`password: ${refusal}`] : [];
}

/** Parses lines into rows to stage, and reports problems. */
export class RecordReader {
  /** Types with a record that leaves out required fields. */
  readonly partial = new Set<RecordType>();
  private readonly types: Map<unknown, RecordType>;
  private readonly refusals = new Map<Field, Refuse>();
  private problemsOfRecord: string[] = [];
  private at = '';

  constructor(
    types: RecordType[],
    private readonly staging: Staging,
    private readonly problems: Problems,
    private readonly mayLetIn = true,
  ) {
    this.types = new Map(types.map((type) => [type.name, type]));
  }

  private refuse(field: Field): Refuse {
    let refuse = this.refusals.get(field);
    if (!refuse) {
      refuse = (why, at = '') => {
        this.problemsOfRecord.push(`${this.at}${field.name}${at} ${why}`);
        return '';
      };
      this.refusals.set(field, refuse);
    }
    return refuse;
  }

  /** The row of a line; undefined: there is none to add, as the line is blank, has a problem, or deletes a record. */
  read(line: Line): ReadRecord | undefined {
    if (line.problem) return this.refuseLine(line, line.problem);
    let record: unknown;
    try {
      record = JSON.parse(line.text);
    } catch {
      return line.text.trim() === '' ? undefined : this.refuseLine(line, 'is not valid JSON');
    }
    if (!isObject(record)) return this.refuseLine(line, 'is not a JSON object');
    const type = this.types.get(record.type);
    if (!type) {
      const name = record.type;
      if (name === undefined) return this.refuseLine(line, 'type is required');
      // Of a list or an object, String() may throw.
      const isText = typeof name !== 'object' || name === null;
      return this.refuseLine(line, isText ? `unknown type ${shown(String(name))}` : 'type must be a text');
    }

    this.problemsOfRecord = this.mayLetIn ? [] : lettingIn(type, record);
    if (record.deleted === true) return this.readDeleted(type, record, line);
    if (record.deleted !== undefined && record.deleted !== null && record.deleted !== false)
      this.problemsOfRecord.push('deleted must be true or false');
    const { present, cells, isPartial } = this.encode(
      type.fields,
      record,
      record.deleted === undefined ? ['type'] : ['type', 'deleted'],
      record[keyOf(type).name] != null || (type.name === 'purchase' && record.reference != null),
    );
    if (isPartial) this.partial.add(type);
    type.check?.(record, (problem) => this.problemsOfRecord.push(problem));
    const entries = type.name === 'collection' && isId(record.id) ? this.readEntries(record) : [];

    if (this.refuseRecord(type, record, line)) return undefined;
    entries.forEach((entry, index) =>
      this.staging.addEntry(line.number, record.id as number, index + 1, entry.present, entry.cells),
    );
    return { row: { type, line: line.number, present, cells }, record };
  }

  private encode(fields: Field[], record: JsonObject, otherNames: string[], mayBePartial: boolean) {
    let present = 0;
    let isPartial = false;
    let names = otherNames.length;
    const cells: string[] = [];
    for (const field of fields) {
      let value = record[field.name];
      if (value !== undefined) names++;
      if (field.implied) value = value ?? field.implied(record) ?? value;
      if (value === undefined || value === null) {
        if (field.required) {
          if (value === undefined && mayBePartial) isPartial = true;
          else this.refuse(field)('is required');
        } else if (value === null && !field.now) present |= field.bit;
        cells.push(field.default);
      } else {
        present |= field.bit;
        cells.push(field.kind.encode(value, this.refuse(field)));
      }
    }
    const given = Object.keys(record);
    if (given.length !== names) {
      for (const name of given) {
        if (otherNames.includes(name)) continue;
        if (!fields.some((field) => field.name === name)) {
          this.problemsOfRecord.push(`unknown field ${this.at}${shown(name)}`);
        }
      }
    }
    return { present, cells, isPartial };
  }

  private readDeleted(type: RecordType, record: JsonObject, line: Line): undefined {
    const key = keyOf(type);
    const value = record[key.name];
    const refuse = this.refuse(key);
    const cells = value == null ? refuse('is required') : key.kind.encode(value, refuse);
    for (const name of Object.keys(record)) {
      if (![key.name, 'type', 'deleted'].includes(name))
        this.problemsOfRecord.push(`${shown(name)} must be absent where deleted is true`);
    }
    // The first column is the key itself.
    if (!this.refuseRecord(type, record, line))
      this.staging.addDeleted(type, line.number, [cells.split('\t')[0]!]);
  }

  /** Reports the problems of a record; false: there are none. */
  private refuseRecord(type: RecordType, record: JsonObject, line: Line): boolean {
    for (const problem of this.problemsOfRecord)
      this.problems.add(line.number, `${subjectOf(type, record)}: ${problem}`);
    if (!this.problemsOfRecord.length) return false;
    if (isId(record.id)) this.staging.addRefused(type, record.id);
    return true;
  }

  private readEntries(collection: JsonObject) {
    const games = collection.games ?? [];
    if (!Array.isArray(games)) return [];
    const seen = new Set<unknown>();
    const entries = games.map((entry: unknown, index) => {
      this.at = `games[${index}].`;
      if (!isObject(entry)) {
        this.problemsOfRecord.push(`games[${index}] must be an object`);
        return { present: 0, cells: [] as string[] };
      }
      if (seen.has(entry.game_id)) this.problemsOfRecord.push(`games[${index}].game_id is in the list twice`);
      seen.add(entry.game_id);
      return this.encode(ENTRY_FIELDS, entry, [], false);
    });
    this.at = '';
    return entries;
  }

  private refuseLine(line: Line, problem: string): undefined {
    this.problems.add(line.number, problem);
  }
}

/** The name of a record in a problem. API keys have none, since the key is secret. */
function subjectOf(type: RecordType, record: JsonObject) {
  if (type.name === 'oauth_application') {
    return typeof record.client_id === 'string' ? `${type.name} ${shown(record.client_id)}` : type.name;
  }
  return type.key === 'id' && isId(record.id) ? `${type.name} ${record.id}` : type.name;
}
