import { Column, type ColumnOptions, type ValueTransformer } from 'typeorm';

// TypeORM makes a Date of each timestamp. It becomes text again, as PostgreSQL writes it and as prepared statements return it.
const asText: ValueTransformer = {
  to: (value: unknown) => value,
  from: (value: unknown) =>
    value instanceof Date ? value.toISOString().replace('T', ' ').replace('Z', '+00') : value,
};

/** A `timestamptz` column whose property is text, such as `2013-03-03 23:02:14.000+00`. */
export const TimestampColumn = (options: ColumnOptions = {}) =>
  Column('timestamptz', { ...options, transformer: asText });
