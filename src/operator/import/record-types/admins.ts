import { type Field, hasField } from './fields';
import { isChanged, isNew, type ChildTables } from './record-type';

/** The field `admins`, stored in a separate table. */
export const adminTable = (table: string, fields: Field[], stored: { in: string; by: string }) => {
  const has = hasField(fields, 'admins');
  const insert = `
    INSERT INTO ${stored.in} (${stored.by}, user_id)
    SELECT s.id, a.user_id FROM import_${table} s, unnest(s.admins) AS a (user_id)`;
  return {
    differ: `${has} AND s.admins IS DISTINCT FROM
      ARRAY(SELECT a.user_id FROM ${stored.in} a WHERE a.${stored.by} = s.id ORDER BY a.user_id)`,
    change: [
      `DELETE FROM ${stored.in} a USING import_${table} s
       WHERE a.${stored.by} = s.id AND ${isChanged(table)} AND ${has} AND NOT a.user_id = ANY (s.admins)`,
      `${insert} WHERE ${isChanged(table)} AND ${has} ON CONFLICT DO NOTHING`,
    ],
    create: [`${insert} WHERE ${isNew(table)}`],
  } satisfies Partial<ChildTables>;
};
