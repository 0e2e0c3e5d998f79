import type { RecordType } from './record-types';
import { changedIn, deletedIn, goneIn, stagedIn, storedIn } from './staged';

interface TypeCounts {
  new: number;
  changed: number;
  unchanged: number;
  /** Only of a type of which the stream deletes records. */
  deleted?: number;
}

/** The results by type of record. */
export type ImportSummary = Record<string, TypeCounts>;

/** `rowsOf`: how many rows a relation has. */
export function summaryOf(types: RecordType[], rowsOf: (relation: string) => number): ImportSummary {
  const summary: ImportSummary = {};
  for (const type of types) {
    const [staged, stored, changed] = [stagedIn(type), storedIn(type), changedIn(type)].map(rowsOf) as [
      number,
      number,
      number,
    ];
    const [toDelete, deleted] = [rowsOf(deletedIn(type)), rowsOf(goneIn(type))];
    if (staged + toDelete === 0) continue;
    summary[type.table] = {
      new: staged - stored,
      changed,
      // A record that is deleted and was not stored counts as unchanged.
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
