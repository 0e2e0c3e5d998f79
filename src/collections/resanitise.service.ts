import { Injectable } from '@nestjs/common';
import { Database } from '../database/database';
import { bind, statement, type Statement, write } from '../database/statement';
import { fitsHtmlLimit, sanitiseHtml } from './html';

const BATCH = 500;

export interface ResanitiseProgress {
  looked_at: number;
  changed: number;
  /** Texts that would be too long now, and stand as they were: the collection, and the game of a blurb. */
  too_long: { collection_id: number; game_id: number | null }[];
}

interface Text {
  collection_id: number;
  game_id: number | null;
  html: string;
}

const DESCRIPTIONS = statement<Text>(
  'resanitise_descriptions',
  `SELECT id AS collection_id, NULL::bigint AS game_id, description AS html FROM collections
   WHERE id > $1 AND $2::bigint IS NOT NULL AND description IS NOT NULL ORDER BY id LIMIT ${BATCH}`,
);

const BLURBS = statement<Text>(
  'resanitise_blurbs',
  `SELECT collection_id, game_id, blurb AS html FROM collection_games
   WHERE (collection_id, game_id) > ($1, $2) AND blurb IS NOT NULL
   ORDER BY collection_id, game_id LIMIT ${BATCH}`,
);

// In the order of the ids, and before anything in them, as every writer locks collections.
const LOCK = statement(
  'resanitise_lock',
  'SELECT FROM collections WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE',
);

// Only what still stands as it was read: what its owner wrote meanwhile was sanitised by the list of today.
const STORE_DESCRIPTIONS = statement(
  'resanitise_store_descriptions',
  `UPDATE collections c SET description = changed.new
   FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS changed (collection_id, game_id, old, new)
   WHERE c.id = changed.collection_id AND c.description = changed.old RETURNING 1`,
);

const STORE_BLURBS = statement(
  'resanitise_store_blurbs',
  `UPDATE collection_games e SET blurb = changed.new
   FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS changed (collection_id, game_id, old, new)
   WHERE e.collection_id = changed.collection_id AND e.game_id = changed.game_id AND e.blurb = changed.old
   RETURNING 1`,
);

/** Brings stored HTML to the allow-list of today, a batch at a time and beside the running service. */
@Injectable()
export class ResanitiseService {
  constructor(private readonly database: Database) {}

  async run(
    report: (progress: ResanitiseProgress) => void,
    signal?: AbortSignal,
  ): Promise<ResanitiseProgress> {
    const progress: ResanitiseProgress = { looked_at: 0, changed: 0, too_long: [] };
    const walks: [Statement<Text>, Statement][] = [
      [DESCRIPTIONS, STORE_DESCRIPTIONS],
      [BLURBS, STORE_BLURBS],
    ];
    for (const [read, store] of walks) {
      let last: Pick<Text, 'collection_id' | 'game_id'> = { collection_id: 0, game_id: 0 };
      for (;;) {
        signal?.throwIfAborted();
        const texts = await this.database.rows(read, [last.collection_id, last.game_id ?? 0]);
        if (texts.length === 0) break;
        await this.batch(texts, store, progress);
        report(progress);
        last = texts.at(-1)!;
      }
    }
    return progress;
  }

  private async batch(texts: Text[], store: Statement, progress: ResanitiseProgress): Promise<void> {
    progress.looked_at += texts.length;
    const changed: (Text & { clean: string | null })[] = [];
    for (const text of texts) {
      const clean = sanitiseHtml(text.html);
      if (!fitsHtmlLimit(clean))
        progress.too_long.push({ collection_id: text.collection_id, game_id: text.game_id });
      else if (clean !== text.html) changed.push({ ...text, clean });
    }
    if (changed.length === 0) return;
    const column = <Key extends keyof (typeof changed)[number]>(key: Key) => changed.map((text) => text[key]);
    progress.changed += await this.database.write(
      write(
        [
          bind(LOCK, [column('collection_id')]),
          bind(store, [column('collection_id'), column('game_id'), column('html'), column('clean')]),
        ],
        ([, stored]) => stored.length,
      ),
    );
  }
}
