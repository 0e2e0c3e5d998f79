import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { BackgroundWriter } from '../platform/database/background-writer';
import { Database } from '../platform/database/database';
import { bind, statement } from '../platform/database/statement';
import { ADD_DOWNLOADS } from '../games/games.service';
import { ADD_KEY_DOWNLOADS } from '../purchases/keys/download-keys.service';

export interface Download {
  game_id: number;
  download_key_id: number | null;
  /** The ID of its session, in lowercase. */
  uuid: string | undefined;
}

/** Returns the sessions that were not counted before. */
const NEW_SESSIONS = statement<{ uuid: string }>(
  'new_download_sessions',
  `INSERT INTO counted_downloads (uuid) SELECT DISTINCT unnest($uuids::uuid[]) ON CONFLICT DO NOTHING RETURNING uuid`,
);

/**
 * The timeout is short because a transaction that counts for many games keeps their locks while it waits for
 * one.
 */
const SHORT_LOCK_TIMEOUT = statement(
  'short_lock_timeout',
  `SELECT set_config('lock_timeout', '50ms', true) AS lock_timeout`,
);

/** Counts downloads in batches, so that a redirect doesn't wait for a write. */
@Injectable()
export class DownloadCounts implements BeforeApplicationShutdown {
  private readonly log = new Logger('Downloads');
  private readonly writer = new BackgroundWriter<Download>({
    intervalMs: 2000,
    batchSize: 1000,
    write: (batch) => this.write(batch),
    failed: ({ message }) => this.log.warn(`Downloads could not be counted: ${message}`),
    retries: true,
  });

  constructor(private readonly database: Database) {}

  add(download: Download): void {
    this.writer.add(download);
  }

  flush(): Promise<void> {
    return this.writer.flush();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.flush();
  }

  private async write(batch: Download[]): Promise<void> {
    const [alone, inSessions] = [batch.filter(({ uuid }) => !uuid), new Map<string, Download>()];
    for (const download of batch) if (download.uuid) inSessions.set(download.uuid, download);
    await this.database.transaction(async (db) => {
      const uuids = [...inSessions.keys()];
      const getRows = await this.database.execute(
        [bind(SHORT_LOCK_TIMEOUT, {}), bind(NEW_SESSIONS, { uuids })],
        db,
      );
      const sessions = getRows(NEW_SESSIONS);
      const counted = [...alone, ...sessions.map(({ uuid }) => inSessions.get(uuid)!)];
      await this.database.execute(
        [
          bind(ADD_DOWNLOADS, totals(counted.map(({ game_id }) => game_id))),
          bind(ADD_KEY_DOWNLOADS, totals(counted.flatMap(({ download_key_id }) => download_key_id ?? []))),
        ],
        db,
      );
    });
  }
}

/** The IDs and how often each occurs. */
function totals(ids: number[]): { ids: number[]; counts: number[] } {
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return { ids: [...counts.keys()], counts: [...counts.values()] };
}
