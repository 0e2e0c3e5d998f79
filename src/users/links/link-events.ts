import { announcement } from '../../events/announcement';
import type { EventType } from '../../events/event-type';
import { read } from '../../platform/database/statement';

/** A stored message contains no email address, so that an erasure needn't read it. */
export const LINK_REQUESTED: EventType = {
  name: 'link.requested',
  title: 'Request for link',
  sent_when:
    'a person requests a link on a page, to set a forgotten password, to sign up, or to verify an email address',
  audience: 'operator',
  subject_type: 'link_request',
  readAtSend: read<{ email: string }>(
    'link_request_email',
    'SELECT email FROM link_requests WHERE id = $subject_id AND $webhook_user_id::bigint IS NULL',
  ),
};

/** Announces the request `$request_id`. */
export const ANNOUNCE_REQUEST = announcement(LINK_REQUESTED, {
  from: 'link_requests r',
  where: 'r.id = $request_id',
  subject_id: 'r.id',
  id_field: 'request_id',
  fields: { purpose: 'r.purpose', user_id: 'r.user_id' },
});

/** Whether a webhook of the store gets the event. */
export const LINKS_ARE_SENT = read<{ sent: boolean }>(
  'links_are_sent',
  `SELECT EXISTS (SELECT FROM webhooks
     WHERE user_id IS NULL AND ended_at IS NULL AND '${LINK_REQUESTED.name}' = ANY (events)) AS sent`,
);
