import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { Database } from '../../platform/database/database';
import { longRead, type Statement } from '../../platform/database/statement';
import { ConcurrencyLimit } from '../../platform/limits/concurrency-limit';
import { LongResponse, PRIVATE_FILE } from '../../platform/output/list-streams';
import { exportParts, type Owned, type Scanned, EXPORT_START } from './export-parts';
import type { Person } from './person';
import { namedValues, transposeKeys, PERSON_QUERY, sliceRows } from './table-scan';

interface Line {
  line: string;
  position: string;
}

type Statements = [Owned | Scanned, Statement<Line>][];

/** Exports all data stored about a person as newline-delimited JSON, except the hashes of secrets. */
@Injectable()
export class ExportService {
  private statements: Statements | undefined;
  // Each export reads whole tables.
  private readonly limit = new ConcurrencyLimit({ accepted: 16, running: 4, each: 1 });

  constructor(
    private readonly database: Database,
    @InjectDataSource() private readonly source: DataSource,
  ) {}

  /** An export as a response; `onEnd` gets the number of lines of each type. */
  response(
    person: Person,
    onEnd: (counts: Record<string, number>) => void,
    more?: Record<string, string>,
  ): LongResponse {
    const headers = { ...PRIVATE_FILE, 'Content-Type': 'application/x-ndjson', ...more };
    return new LongResponse(this.limit, headers, this.recorded(person, onEnd), { takesLong: true });
  }

  private async *recorded(person: Person, onEnd: (counts: Record<string, number>) => void) {
    const counts = {};
    try {
      yield* this.lines(person, counts);
    } finally {
      onEnd(counts);
    }
  }

  /** Lines, a slice at a time; adds their number to `counts`, by type. */
  async *lines(person: Person, counts: Record<string, number>): AsyncGenerator<string> {
    this.statements ??= exportParts(this.source).map((part, i) => [part, this.createStatement(part, i)]);
    for (const [part, statement] of this.statements)
      for await (const lines of 'scan' in part
        ? this.scanned(part, statement, person)
        : this.owned(part, statement, person)) {
        if (lines.length === 0) continue;
        counts[part.type] = (counts[part.type] ?? 0) + lines.length;
        yield lines.map(({ line }) => `${line}\n`).join('');
      }
  }

  private async *owned(part: Owned, statement: Statement<Line>, { user_id }: Person): AsyncGenerator<Line[]> {
    if (user_id === null) return;
    let position = EXPORT_START[part.key_type];
    for (;;) {
      const lines = await this.database.rows(statement, { user_id, position });
      yield lines;
      if (lines.length < part.at_once) return;
      position = lines.at(-1)!.position;
    }
  }

  private async *scanned(
    { scan, at_once }: Scanned,
    statement: Statement<Line>,
    { user_id, addresses }: Person,
  ): AsyncGenerator<Line[]> {
    for await (const rows of scan.rows(this.database, { user_id, addresses }))
      for (const slice of sliceRows(rows, at_once))
        yield await this.database.rows(statement, {
          user_id,
          addresses,
          ...namedValues('listed', scan.keys, transposeKeys(scan, slice)),
        });
  }

  private createStatement(part: Owned | Scanned, i: number): Statement<Line> {
    const { tablePath } = this.source.getMetadata(part.entity);
    const name = `export_${part.type}_${i}`;
    const line = `${this.json(part)}::text AS line`;
    if (!('scan' in part)) {
      const { key, key_type, where, at_once } = part;
      return longRead(
        name,
        `SELECT ${line}, t.${key}::text AS position FROM ${tablePath} t
         WHERE ${where} AND t.${key} > $position::${key_type} ORDER BY t.${key} LIMIT ${at_once}`,
      );
    }
    const keys = Object.entries<string>(part.scan.keys);
    const names = keys.map(([key]) => key).join(', ');
    return longRead(
      name,
      `WITH ${PERSON_QUERY}
       SELECT ${line} FROM person, unnest(${keys.map(([key, type]) => `$listed_${key}::${type}[]`).join(', ')})
         WITH ORDINALITY AS listed (${names}, place) JOIN ${tablePath} t USING (${names})
       WHERE ${part.where ?? 'true'} ORDER BY listed.place`,
    );
  }

  private json({ type, entity, columns = {} }: Owned | Scanned): string {
    const stored = this.source
      .getMetadata(entity)
      // All bytea columns are hashes or encrypted secrets, which are not exported.
      .columns.filter(({ type: of, databaseName }) => of !== 'bytea' && columns[databaseName] === undefined)
      .map(({ type: of, databaseName: column }) =>
        of === 'timestamptz' ? `${inUtc(`t.${column}`)} AS ${column}` : `t.${column}`,
      );
    const others = Object.entries(columns).filter(([, sql]) => sql !== null);
    const fields = [`'${type}' AS type`, ...stored, ...others.map(([name, sql]) => `${sql} AS ${name}`)];
    return `(SELECT row_to_json(line) FROM (SELECT ${fields.join(', ')}) line)`;
  }
}

const inUtc = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
