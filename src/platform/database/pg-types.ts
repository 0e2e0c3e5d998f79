import { types } from 'pg';

/** The elements of an array in PostgreSQL's format, if they need no quotes. */
export const parseList = (text: string): string[] => (text === '{}' ? [] : text.slice(1, -1).split(','));

const { INT8, NUMERIC, TIMESTAMPTZ } = types.builtins;
const INT8_ARRAY = 1016;
const TEXT_ARRAY = 1009;

const parseTextArray = types.getTypeParser(TEXT_ARRAY as never) as (text: string) => string[];

// IDs and counts are numbers: CHECK constraints keep them below 2^53. Timestamps stay text, which is only reformatted
// for the response: a Date would take more time than the rest of the row.
const parsers: Record<number, (text: string) => unknown> = {
  [INT8]: Number,
  [NUMERIC]: Number,
  [TIMESTAMPTZ]: (text) => text,
  // Arrays without quotes are split, which is faster than pg's parser.
  [TEXT_ARRAY]: (text) => (/["\\]|NULL/.test(text) ? parseTextArray(text) : parseList(text)),
  [INT8_ARRAY]: (text) => parseList(text).map(Number),
};

export const pgTypes = {
  getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
    return (format !== 'binary' && parsers[oid]) || types.getTypeParser(oid, format as 'text');
  },
};
