import type { Line } from './ndjson';
import { isId, type Refuse, shown } from './kinds';
import type { Problems } from './problems';
import { ENTRY_FIELDS, type Field, type JsonObject, type RecordType } from './record-types';
import type { Staging } from './staging';

export interface StagedRecord {
  type: RecordType;
  line: number;
  present: number;
  cells: string[];
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses lines into rows to stage, and reports problems. */
export class RecordReader {
  private readonly types: Map<unknown, RecordType>;
  private readonly refusals = new Map<Field, Refuse>();
  private problemsOfRecord: string[] = [];
  private at = '';

  constructor(
    types: RecordType[],
    private readonly staging: Staging,
    private readonly problems: Problems,
  ) {
    this.types = new Map(types.map((type) => [type.name, type]));
    for (const field of [...ENTRY_FIELDS, ...types.flatMap((type) => type.fields)]) {
      this.refusals.set(field, (why, at = '') => {
        this.problemsOfRecord.push(`${this.at}${field.name}${at} ${why}`);
        return '';
      });
    }
  }

  /** The row of a line; undefined: the line is blank or has a problem. */
  read(line: Line): { row: StagedRecord; record: JsonObject } | undefined {
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
      return this.refuseLine(
        line,
        name === undefined ? 'type is required' : `unknown type ${shown(String(name))}`,
      );
    }

    this.problemsOfRecord = [];
    const { present, cells } = this.encode(type.fields, record, 1);
    type.check?.(record, (problem) => this.problemsOfRecord.push(problem));
    const entries = type.name === 'collection' && isId(record.id) ? this.readEntries(record) : [];

    if (this.problemsOfRecord.length) {
      for (const problem of this.problemsOfRecord) {
        this.problems.add(line.number, `${subjectOf(type, record)}: ${problem}`);
      }
      if (isId(record.id)) this.staging.addRefused(type, record.id);
      return undefined;
    }
    entries.forEach((entry, index) =>
      this.staging.addEntry(line.number, record.id as number, index + 1, entry.present, entry.cells),
    );
    return { row: { type, line: line.number, present, cells }, record };
  }

  private encode(fields: Field[], record: JsonObject, otherNames: number) {
    let present = 0;
    let names = otherNames;
    const cells: string[] = [];
    for (const field of fields) {
      let value = record[field.name];
      if (value !== undefined) names++;
      if (field.implied) value = value ?? field.implied(record) ?? value;
      if (value === undefined || value === null) {
        if (field.required) this.refusals.get(field)!('is required');
        else if (value === null && !field.now) present |= field.bit;
        cells.push(field.default);
      } else {
        present |= field.bit;
        cells.push(field.kind.encode(value, this.refusals.get(field)!));
      }
    }
    const given = Object.keys(record);
    if (given.length !== names) {
      for (const name of given) {
        if (name === 'type' && otherNames) continue;
        if (!fields.some((field) => field.name === name)) {
          this.problemsOfRecord.push(`unknown field ${this.at}${shown(name)}`);
        }
      }
    }
    return { present, cells };
  }

  private readEntries(collection: JsonObject) {
    const games = collection.games ?? [];
    if (!Array.isArray(games)) return [];
    const seen = new Set<unknown>();
    const entries = games.map((entry: unknown, index) => {
      this.at = `games[${index}].`;
      if (!isObject(entry)) {
        this.problemsOfRecord.push(`games[${index}] must be an object`);
        return { present: 0, cells: [] };
      }
      if (seen.has(entry.game_id)) this.problemsOfRecord.push(`games[${index}].game_id is in the list twice`);
      seen.add(entry.game_id);
      return this.encode(ENTRY_FIELDS, entry, 0);
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
