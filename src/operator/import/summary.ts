import type { Relation } from '../../platform/database/relations';
import type { TypeCountsResponse } from './import.dto';
import type { RecordType } from './record-types/record-type';

/** The results by type of record. */
export type ImportSummary = Record<string, TypeCountsResponse>;

/** `rowsOf`: the number of rows of a relation. */
export function summaryOf(types: RecordType[], rowsOf: (relation: Relation) => number): ImportSummary {
  const summary: ImportSummary = {};
  for (const type of types) {
    const [given, stored, changed] = [rowsOf(type.records), rowsOf(type.stored), rowsOf(type.changed)];
    const [toDelete, deleted] = [rowsOf(type.deleted), rowsOf(type.removed)];
    if (given + toDelete === 0) continue;
    summary[type.table] = {
      new: given - stored,
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
