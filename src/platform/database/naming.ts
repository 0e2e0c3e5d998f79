import { DefaultNamingStrategy, type Table } from 'typeorm';

/** PostgreSQL's own names of keys, and `user_id` for the column of a relation `user`. */
export class Naming extends DefaultNamingStrategy {
  override primaryKeyName(table: Table | string): string {
    return `${this.getTableName(table)}_pkey`;
  }

  override foreignKeyName(table: Table | string, columns: string[]): string {
    return `${this.getTableName(table)}_${columns.join('_')}_fkey`;
  }

  override joinColumnName(relation: string, referenced: string): string {
    return `${relation}_${referenced}`;
  }
}
