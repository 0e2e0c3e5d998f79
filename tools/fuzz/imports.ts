import fc, { type Arbitrary } from 'fast-check';
import type { Json, JsonObject } from '../../test/support/world/json';
import { excerpt, Finding } from './oracles';
import type { Target } from './target';
import { ECHO } from './values';
import { importMessage, toNdjsonText, tenantRecords, Tenant } from '../../test/support/world/world';

/** Changes to a valid stream of records that changes nothing. */
export interface Import {
  changes: { line: number; what: 'field' | 'unknown' | 'absent' | 'text'; field: number; value: Json }[];
}

const TENANT = new Tenant(3);

const value: Arbitrary<Json> = fc.constantFrom<Json>(
  ...[
    null,
    true,
    -1,
    0,
    1.5,
    1e300,
    9007199254740993,
    '',
    ' ',
    `${ECHO}\0`,
    '\ud800',
    `<b>${ECHO}</b>`,
    [],
    {},
    [null],
  ],
  ...[
    [-1],
    [1, 1],
    'x'.repeat(2000),
    '2024-13-01T00:00:00Z',
    '0000-00-00',
    '99999-01-01T00:00:00Z',
    999_999_999,
  ],
);

export const imports: Arbitrary<Import> = fc.record({
  changes: fc.array(
    fc.record({
      line: fc.nat({ max: 60 }),
      what: fc.constantFrom('field', 'field', 'field', 'unknown', 'absent', 'text'),
      field: fc.nat({ max: 14 }),
      value,
    }),
    { maxLength: 3 },
  ),
});

function changedLines({ changes }: Import): string[] {
  const records = tenantRecords(TENANT).filter(({ type }) => type !== 'collection') as JsonObject[];
  // Hashing a password takes as much CPU time as a hundred requests.
  for (const record of records) delete record.password;
  const lines = records.map((record) => JSON.stringify(record));
  for (const { line, what, field, value } of changes) {
    const record = records[line % records.length]!;
    const name = Object.keys(record)[field % Object.keys(record).length]!;
    if (what === 'unknown') record[`x${name}`] = value;
    else if (what === 'absent') delete record[name];
    else record[name] = value;
    lines[line % records.length] = what === 'text' ? JSON.stringify(value) : JSON.stringify(record);
  }
  return lines;
}

/** Either the whole stream is imported, or every problem names its line and nothing is. */
export async function runImport(target: Target, given: Import): Promise<void> {
  const operation = target.operation('POST /operator/import');
  const send = (text: string) => target.send(importMessage(text), { operation });
  const { response, json } = await send(changedLines(given).join('\n'));
  if (response.status === 400) {
    const { errors } = json as { errors: string[] };
    if (!errors.every((text) => /^(line \d+: |and \d+ more|\d+ more|the )/.test(text)))
      throw new Finding('import', 'a problem names no line', excerpt(response));
  } else if (response.status !== 200)
    throw new Finding('import', `returns ${response.status}`, excerpt(response));
  const restored = await send(
    toNdjsonText(
      tenantRecords(TENANT)
        .filter(({ type }) => type !== 'collection')
        .map(({ password: _, ...record }) => record),
    ),
  );
  if (restored.response.status !== 200)
    throw new Finding('import', 'what was stored cannot be stored again', excerpt(restored.response));
  if (response.status === 200) return;
  const { types } = restored.json as { types: Record<string, { new: number; changed: number }> };
  const written = Object.values(types).some((counts) => counts.new + counts.changed > 0);
  if (written) throw new Finding('import', 'a rejected stream left something', excerpt(restored.response));
}
