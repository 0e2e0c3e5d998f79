import { types } from 'pg';

const { INT8, NUMERIC, TIMESTAMPTZ } = types.builtins;
const INT8_ARRAY = 1016;

// Ids and counts are numbers: CHECK constraints keep them below 2^53. Timestamps stay text, as PostgreSQL writes them:
// the wire formats are a rearrangement of that text, and a Date in between costs more than the rest of the row.
const parsers: Record<number, (text: string) => unknown> = {
  [INT8]: Number,
  [NUMERIC]: Number,
  [TIMESTAMPTZ]: (text) => text,
  [INT8_ARRAY]: (text) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(Number)),
};

export const pgTypes = {
  getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
    return (format !== 'binary' && parsers[oid]) || types.getTypeParser(oid, format as 'text');
  },
};
