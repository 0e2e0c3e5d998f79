import { type Statement, statement } from '../platform/database/statement';
import type { EventType } from './event-type';

/** Read before a transaction: without webhooks, it has no statement for them. */
export const HAS_WEBHOOKS = 'EXISTS (SELECT FROM webhooks WHERE ended_at IS NULL)';

/** SQL of the rows that an event is about. */
export interface Source {
  /** The tables of a FROM clause. */
  from: string;
  where: string;
  subject_id: string;
  /** The name of the subject's ID in the message. */
  id_field?: string;
  /** The other fields of the message, as SQL expressions by name. Without the subject's ID. */
  fields: Record<string, string>;
}

/**
 * Stores a message for each webhook `w` that is subscribed: a statement for the transaction that causes the event.
 * `isSubscribed` is a condition on `w` and the subject `s`, which has the columns `subject_id`, `data`, and `columns`.
 */
export const announcement = (
  { name, subject_type }: EventType,
  { from, where, subject_id, id_field = 'id', fields }: Source,
  isSubscribed = 'w.user_id IS NULL',
  columns: Record<string, string> = {},
): Statement =>
  statement(
    `announce_${name.replaceAll('.', '_')}`,
    `INSERT INTO webhook_deliveries (id, webhook_id, event, subject_type, subject_id, data)
     SELECT gen_random_uuid(), w.id, '${name}', '${subject_type}', s.subject_id, s.data
     FROM (
       SELECT ${Object.entries({ subject_id, ...columns })
         .map(([column, sql]) => `${sql} AS ${column}`)
         .join(', ')},
         json_build_object(${Object.entries({ [id_field]: subject_id, ...fields })
           .map(([field, sql]) => `'${field}', ${sql}`)
           .join(', ')}) AS data
       FROM ${from} WHERE ${where} OFFSET 0) s
     JOIN webhooks w ON w.ended_at IS NULL AND '${name}' = ANY (w.events) AND ${isSubscribed}`,
  );
