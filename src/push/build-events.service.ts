import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../platform/database/database';
import { longRead, statement } from '../platform/database/statement';
import { tooMany } from '../platform/errors/api-error';
import { modernTimestamp } from '../platform/formats/timestamps';
import type { BuildEvent } from '../wharf/build-event.entity';
import type { BuildEventResponse } from './push.dto';

/** The limit for one build, in addition to events of the service itself. */
const MAX_EVENTS = 1000;
/** The limit for the texts of all events of a build, which one response lists. */
const MAX_EVENT_BYTES = 1024 * 1024;

/** Maximum number of failed builds of a game that keep all their events, and to which clients can add some. */
export const MAX_FAILED_WITH_EVENTS = 10;

/** An event of the service itself about a build. */
export const ADD_EVENT = statement(
  'add_own_build_event',
  'INSERT INTO build_events (build_id, type, message, data) VALUES ($build_id, $type, $message, $data)',
);

const ADD_CLIENT_EVENT = statement<{ id: number }>(
  'add_build_event',
  `INSERT INTO build_events (build_id, type, message, data)
   SELECT $build_id, $type, $message, $data
   WHERE (SELECT count(*) < ${MAX_EVENTS} AND coalesce(sum(octet_length(message) + coalesce(octet_length(data), 0)), 0)
            <= ${MAX_EVENT_BYTES} - octet_length($message::text) - coalesce(octet_length($data::text), 0)
          FROM build_events WHERE build_id = $build_id)
     AND NOT EXISTS (
       SELECT FROM builds b WHERE b.id = $build_id AND b.state = 'failed' AND EXISTS (
         SELECT FROM builds o WHERE o.game_id = b.game_id AND o.id > b.id AND o.state = 'failed'
         OFFSET ${MAX_FAILED_WITH_EVENTS - 1}))
   RETURNING id`,
);

const EVENTS_OF_BUILD = longRead<Pick<BuildEvent, 'id' | 'type' | 'message' | 'data' | 'created_at'>>(
  'build_events',
  `SELECT id, type, message, data, created_at FROM build_events WHERE build_id = $build_id
   ORDER BY id LIMIT ${MAX_EVENTS + 100}`,
);

/** What happened to a build, as its upload tool and the service report it. */
@Injectable()
export class BuildEventsService {
  constructor(private readonly database: Database) {}

  async add(
    build_id: number,
    { type, message, data }: { type: string; message: string; data?: string },
    manager?: EntityManager,
  ): Promise<void> {
    const values = { build_id, type, message, data: data ?? null };
    if (!(await this.database.row(ADD_CLIENT_EVENT, values, manager)))
      throw tooMany('too many events of the build');
  }

  async list(build_id: number): Promise<BuildEventResponse[]> {
    const events = await this.database.rows(EVENTS_OF_BUILD, { build_id });
    return events.map((event) => ({ ...event, created_at: modernTimestamp(event.created_at) }));
  }
}
