import { announceToEditors } from '../games/game-events';
import type { EventType } from '../events/event-type';

const BUILD_COMPLETED: EventType = {
  name: 'build.completed',
  title: 'Build',
  sent_when: 'a pushed build can be downloaded',
  audience: 'editors',
  subject_type: 'build',
};

const BUILD_FAILED: EventType = {
  ...BUILD_COMPLETED,
  name: 'build.failed',
  title: 'Failed build',
  sent_when: 'a pushed build has failed; `error` says why',
};

export const BUILD_EVENTS = [BUILD_COMPLETED, BUILD_FAILED];

const announcement = (type: EventType, state: string) =>
  announceToEditors(type, {
    from: 'builds b',
    where: `b.id = $build_id AND b.state = '${state}'`,
    subject_id: 'b.id',
    game_ids: 'ARRAY[b.game_id]',
    fields: {
      channel_name: 'b.channel_name',
      version: 'b.version',
      user_version: 'b.user_version',
      hidden: 'b.hidden',
      error: 'b.error',
      created_at: `to_char(b.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
    },
  });

/** A statement of the transaction that completes the build. */
export const ANNOUNCE_COMPLETED = announcement(BUILD_COMPLETED, 'completed');

/** A statement of the transaction in which the build fails. */
export const ANNOUNCE_FAILED = announcement(BUILD_FAILED, 'failed');
