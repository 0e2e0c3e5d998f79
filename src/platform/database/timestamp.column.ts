import { Column, type ColumnOptions, type ValueTransformer } from 'typeorm';

// TypeORM creates a Date of each timestamp. It is converted back to PostgreSQL's text, as prepared statements return
// it.
const asText: ValueTransformer = {
  to: (value: unknown) => value,
  from: (value: unknown) =>
    value instanceof Date ? value.toISOString().replace('T', ' ').replace('Z', '+00') : value,
};

/** A `timestamptz` column whose property is text, such as `2013-03-03 23:02:14.000+00`. */
export const TimestampColumn = (options: ColumnOptions = {}) =>
  Column('timestamptz', { ...options, transformer: asText });
