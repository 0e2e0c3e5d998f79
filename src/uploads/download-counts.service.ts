import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { Database } from '../platform/database/database';
import { bind, statement } from '../platform/database/statement';
import { ADD_DOWNLOADS } from '../games/games.service';
import { ADD_KEY_DOWNLOADS } from '../purchases/download-keys.service';

/** Milliseconds. */
const INTERVAL = 2000;
const MAX_BATCH = 1000;
/** Waiting downloads while the database is unavailable; more are not counted. */
const MAX_WAITING = 20_000;

export interface Download {
  game_id: number;
  download_key_id: number | null;
  uuid: string | undefined;
}

/** Returns the sessions that were not counted before. */
const NEW_SESSIONS = statement<{ uuid: string }>(
  'new_download_sessions',
  `INSERT INTO counted_downloads (uuid) SELECT DISTINCT unnest($1::uuid[]) ON CONFLICT DO NOTHING RETURNING uuid`,
);

/** Counts downloads in batches, so that a redirect doesn't wait for a write. */
@Injectable()
export class DownloadCounts implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly log = new Logger('Downloads');
  private waiting: Download[] = [];
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> = Promise.resolve();

  constructor(private readonly database: Database) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.flush(), INTERVAL).unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.flush();
  }

  add(download: Download): void {
    if (this.waiting.length < MAX_WAITING) this.waiting.push(download);
  }

  flush(): Promise<void> {
    return (this.flushing = this.flushing.then(async () => {
      while (this.waiting.length > 0) {
        const batch = this.waiting.splice(0, MAX_BATCH);
        try {
          await this.write(batch);
        } catch (error) {
          this.waiting.unshift(...batch);
          this.log.warn(`Downloads could not be counted: ${(error as Error).message}`);
          return;
        }
      }
    }));
  }

  private async write(batch: Download[]): Promise<void> {
    const [alone, inSessions] = [batch.filter(({ uuid }) => !uuid), new Map<string, Download>()];
    for (const download of batch) if (download.uuid) inSessions.set(download.uuid.toLowerCase(), download);
    await this.database.transaction(async (db) => {
      const sessions = inSessions.size
        ? (await this.database.run(db, [bind(NEW_SESSIONS, [[...inSessions.keys()]])]))(NEW_SESSIONS)
        : [];
      const counted = [...alone, ...sessions.map(({ uuid }) => inSessions.get(uuid)!)];
      await this.database.run(db, [
        bind(ADD_DOWNLOADS, totals(counted.map(({ game_id }) => game_id))),
        bind(ADD_KEY_DOWNLOADS, totals(counted.flatMap(({ download_key_id }) => download_key_id ?? []))),
      ]);
    });
  }
}

/** The IDs and how often each occurs. */
function totals(ids: number[]): [ids: number[], counts: number[]] {
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [[...counts.keys()], [...counts.values()]];
}
