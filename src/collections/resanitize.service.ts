import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import { bind, longRead, statement } from '../platform/database/statement';
import { LOCK_COLLECTIONS } from './collection-access';
import { fitsHtmlLimit, sanitizeHtml } from './html';

const TEXTS_PER_BATCH = 500;

interface Text {
  collection_id: number;
  /** 0: the description of the collection. */
  game_id: number;
  html: string;
}

/**
 * Statements that read a batch of texts and store changed ones. Texts that changed in the meantime were
 * sanitized with the current allow-list.
 */
const textStatements = (table: string, column: string, collection_id: string, game_id: string) => ({
  read: longRead<Text>(
    `resanitize_${table}`,
    `SELECT ${collection_id} AS collection_id, ${game_id} AS game_id, ${column} AS html FROM ${table}
     WHERE ${collection_id} >= $last_collection AND (${collection_id}, ${game_id}) > ($last_collection, $last_game) AND ${column} IS NOT NULL
     ORDER BY 1, 2 LIMIT ${TEXTS_PER_BATCH}`,
  ),
  store: statement(
    `resanitize_store_${table}`,
    `UPDATE ${table} t SET ${column} = changed.clean
     FROM unnest($collection_ids::bigint[], $game_ids::bigint[], $texts::text[], $cleaned::text[]) AS changed (of_collection, of_game, html, clean)
     WHERE ${collection_id} = of_collection AND ${game_id} = of_game AND ${column} = html RETURNING 1`,
  ),
});

const ALL_TEXTS = [
  textStatements('collections', 'description', 'id', '0::bigint'),
  textStatements('collection_games', 'blurb', 'collection_id', 'game_id'),
];

export interface Resanitized {
  checked: number;
  changed: number;
  /** Texts that would be too long after sanitizing, and are unchanged. */
  too_long: Text[];
}

/** Sanitizes stored HTML with the current allow-list, one batch at a time, while the service runs. */
@Injectable()
export class ResanitizeService {
  constructor(private readonly database: Database) {}

  /** Calls `progress` after each batch. */
  async run(progress: (done: Resanitized) => void, signal?: AbortSignal): Promise<Resanitized> {
    const done: Resanitized = { checked: 0, changed: 0, too_long: [] };
    for (const { read, store } of ALL_TEXTS)
      for (let last = { last_collection: 0, last_game: 0 }; ;) {
        signal?.throwIfAborted();
        const texts = await this.database.rows(read, last);
        if (texts.length === 0) break;
        const { collection_id, game_id } = texts.at(-1)!;
        last = { last_collection: collection_id, last_game: game_id };
        done.checked += texts.length;
        const cleaned = texts.map((text) => ({ ...text, clean: sanitizeHtml(text.html) }));
        done.too_long.push(...cleaned.filter(({ clean }) => !fitsHtmlLimit(clean)));
        const changed = cleaned.filter(({ html, clean }) => fitsHtmlLimit(clean) && clean !== html);
        const collection_ids = changed.map((text) => text.collection_id);
        const stored = bind(store, {
          collection_ids,
          game_ids: changed.map((text) => text.game_id),
          texts: changed.map(({ html }) => html),
          cleaned: changed.map(({ clean }) => clean),
        });
        const getRows = await this.database.execute([bind(LOCK_COLLECTIONS, { collection_ids }), stored]);
        done.changed += getRows(store).length;
        progress(done);
      }
    return done;
  }
}
