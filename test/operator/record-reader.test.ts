import { Problems } from '../../src/operator/import/problems';
import { RecordReader } from '../../src/operator/import/record-reader';
import { hasField, optional, required } from '../../src/operator/import/record-types/fields';
import { recordType } from '../../src/operator/import/record-types/record-type';
import { boolean, ownId } from '../../src/operator/import/value-types';
import type { StagedRow } from '../../src/operator/import/staging';
import { useStore } from '../support/app';
import { sql } from '../support/sql';

useStore();

test('tells the fields of a record apart, even if its type has more than 32', async () => {
  const names = Array.from({ length: 52 }, (_, i) => `field${i}`);
  const fields = [required('id', ownId), ...names.map((name) => optional(name, boolean))];
  const rows: StagedRow[] = [];
  const staging = { stage: (_: unknown, row: StagedRow) => void rows.push(row) };
  const reader = new RecordReader(
    [recordType({ name: 'wide', table: 'wide', fields })],
    staging,
    new Problems(),
  );
  for (const name of names)
    reader.read({ number: 1, text: JSON.stringify({ type: 'wide', id: 1, [name]: true }) });
  for (const [i, [, present]] of rows.entries()) {
    const found = await sql(
      `SELECT * FROM (VALUES ${names.map((name) => `('${name}', ${hasField(fields, name)})`).join(', ')}) AS f (name, present)
       WHERE present`.replaceAll('s.present', `(${present}::bigint)`),
    );
    expect(found).toEqual([{ name: names[i], present: true }]);
  }
});
