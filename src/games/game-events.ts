import { announcement, type Source } from '../events/announcement';
import type { EventType } from '../events/event-type';
import { canEdit } from './visibility';

/**
 * The game of a user's webhook for all games that they can edit. Not null, because replicas of 0.1.0, which
 * may still be running, would notify the webhook of every sale of the store.
 */
export const ALL_OWN_GAMES = 0;

/**
 * Whether the webhook `w` is notified of events of the game `g`. A user's webhook is notified only while the
 * user can edit the game.
 */
const RECEIVES = `((coalesce(w.game_id, ${ALL_OWN_GAMES}) = ${ALL_OWN_GAMES} OR g.id = w.game_id)
    AND (w.user_id IS NULL OR ${canEdit('g', 'w.user_id')}))`;

/** Users who can edit a game of `ids`. Computed once and not for each webhook. */
const editors = (ids: string) => `ARRAY(
  SELECT g.user_id FROM games g WHERE g.id = ANY (${ids})
  UNION SELECT a.user_id FROM game_admins a WHERE a.game_id = ANY (${ids}))`;

interface GameSource extends Source {
  /** An expression for an ascending array of IDs. */
  game_ids: string;
}

/** Announces an event about games, which are the field `game_ids` of the message. */
export const announceToEditors = (type: EventType, { from, game_ids, fields, ...source }: GameSource) =>
  announcement(
    type,
    {
      ...source,
      from: `${from} CROSS JOIN LATERAL (SELECT ${game_ids} AS ids) about`,
      fields: { game_ids: 'about.ids', ...fields },
    },
    `(w.user_id IS NULL OR w.user_id = ANY (s.editors))
       AND EXISTS (SELECT FROM games g WHERE g.id = ANY (s.game_ids) AND ${RECEIVES})`,
    { game_ids: 'about.ids', editors: editors('about.ids') },
  );

/** Whether a stored message with this `data` may still be sent to the webhook `w`. */
export const isSubscribed = (data: string) => `EXISTS (
  SELECT FROM json_array_elements_text(${data} -> 'game_ids') AS about (id) JOIN games g ON g.id = about.id::bigint
  WHERE ${RECEIVES})`;
