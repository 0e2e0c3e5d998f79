import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Database } from '../platform/database/database';
import { bind, statement, type Statement } from '../platform/database/statement';
import { Collection } from './collection.entity';
import { CollectionGame } from './collection-game.entity';
import { LOCK_COLLECTIONS } from './collection-lock';
import { fitsHtmlLimit, sanitiseHtml } from './html';

const BATCH = 500;

export interface ResanitiseProgress {
  looked_at: number;
  changed: number;
  /** Texts that would be too long now, and are unchanged: the collection, and the game of a blurb. */
  too_long: { collection_id: number; game_id: number | null }[];
}

interface Text {
  collection_id: number;
  game_id: number | null;
  html: string;
}

type Position = Pick<Text, 'collection_id' | 'game_id'>;

// Only texts that are unchanged since they were read: newer ones were sanitized by the current allow-list.
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

/** Sanitizes stored HTML by the current allow-list, a batch at a time, while the service runs. */
@Injectable()
export class ResanitiseService {
  constructor(
    private readonly database: Database,
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    @InjectRepository(CollectionGame) private readonly entries: Repository<CollectionGame>,
  ) {}

  async run(
    report: (progress: ResanitiseProgress) => void,
    signal?: AbortSignal,
  ): Promise<ResanitiseProgress> {
    const progress: ResanitiseProgress = { looked_at: 0, changed: 0, too_long: [] };
    const passes: [(last: Position) => Promise<Text[]>, Statement][] = [
      [(last) => this.descriptionsAfter(last), STORE_DESCRIPTIONS],
      [(last) => this.blurbsAfter(last), STORE_BLURBS],
    ];
    for (const [read, store] of passes) {
      let last: Position = { collection_id: 0, game_id: 0 };
      for (;;) {
        signal?.throwIfAborted();
        const texts = await read(last);
        if (texts.length === 0) break;
        await this.batch(texts, store, progress);
        report(progress);
        last = texts.at(-1)!;
      }
    }
    return progress;
  }

  private descriptionsAfter({ collection_id }: Position): Promise<Text[]> {
    return this.collections
      .createQueryBuilder('c')
      .select(['c.id AS collection_id', 'NULL::bigint AS game_id', 'c.description AS html'])
      .where('c.id > :collection_id AND c.description IS NOT NULL', { collection_id })
      .orderBy('c.id')
      .limit(BATCH)
      .getRawMany();
  }

  private blurbsAfter(last: Position): Promise<Text[]> {
    return this.entries
      .createQueryBuilder('e')
      .select(['e.collection_id AS collection_id', 'e.game_id AS game_id', 'e.blurb AS html'])
      .where('(e.collection_id, e.game_id) > (:collection_id, :game_id) AND e.blurb IS NOT NULL', last)
      .orderBy('e.collection_id')
      .addOrderBy('e.game_id')
      .limit(BATCH)
      .getRawMany();
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
    progress.changed += await this.database.write({
      statements: [
        bind(LOCK_COLLECTIONS, [column('collection_id')]),
        bind(store, [column('collection_id'), column('game_id'), column('html'), column('clean')]),
      ],
      result: (rowsOf) => rowsOf(store).length,
    });
  }
}
