import type { TemporaryTables } from './temporary-tables';
import type { TypeCountsResponse } from './import.dto';
import type { RecordType } from './record-types/record-type';

/** The results by type of record. */
export type ImportSummary = Record<string, TypeCountsResponse>;

export function summarize(types: RecordType[], tables: TemporaryTables): ImportSummary {
  const summary: ImportSummary = {};
  for (const type of types) {
    const [records, stored, changed, toDelete, deleted] = [
      type.records,
      type.stored,
      type.changed,
      type.deleted,
      type.removed,
    ].map((table) => tables.rowCount(table)) as [number, number, number, number, number];
    if (records + toDelete === 0) continue;
    summary[type.table] = {
      new: records - stored,
      changed,
      // A record to delete that is not stored counts as unchanged.
      unchanged: stored - changed + toDelete - deleted,
      ...(toDelete && { deleted }),
    };
  }
  return summary;
}

export const summaryLines = (summary: ImportSummary) =>
  Object.entries(summary).map(
    ([table, counts]) =>
      `${table} ${counts.new} new, ${counts.changed} changed, ${counts.unchanged} unchanged` +
      (counts.deleted === undefined ? '' : `, ${counts.deleted} deleted`),
  );
