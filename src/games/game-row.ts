import { listOf, words, wordsOf } from '../database/words';
import type { Game } from './game.entity';

/** What a game's answers are made of; timestamps as PostgreSQL writes them. */
export interface GameRow extends Pick<
  Game,
  | 'id'
  | 'owner_name'
  | 'slug'
  | 'title'
  | 'short_text'
  | 'cover_url'
  | 'type'
  | 'classification'
  | 'traits'
  | 'min_price'
  | 'views_count'
  | 'downloads_count'
  | 'purchases_count'
> {
  published_at: string | null;
  created_at: string;
  /** Currency code and minor units in one text each (`USD500`), by currency. */
  earnings: string[];
}

/** As `gameColumns` selects it. */
export interface SelectedGame extends Pick<GameRow, 'title' | 'short_text' | 'cover_url'> {
  words: string;
}

type GameWords = [
  id: string,
  owner_name: string,
  slug: string,
  type: Game['type'],
  classification: Game['classification'],
  traits: string,
  created_at: string,
  min_price: string,
  views_count: string,
  downloads_count: string,
  purchases_count: string,
  earnings: string,
  published_at?: string,
];

/** The columns of a row for the game `g`. */
export const GAME_COLUMNS = `
  ${words(
    'g.id',
    'g.owner_name',
    'g.slug',
    'g.type',
    'g.classification',
    'g.traits',
    'g.created_at',
    'g.min_price',
    'g.views_count',
    'g.downloads_count',
    'g.purchases_count',
    `ARRAY(SELECT currency || amount FROM game_earnings ge WHERE ge.game_id = g.id ORDER BY currency)`,
    'g.published_at',
  )}, g.title, g.short_text, g.cover_url`;

export function gameRow({ words, title, short_text, cover_url }: SelectedGame): GameRow {
  const [
    id,
    owner_name,
    slug,
    type,
    classification,
    traits,
    created_at,
    min_price,
    views_count,
    downloads_count,
    purchases_count,
    earnings,
    published_at,
  ] = wordsOf<GameWords>(words);
  return {
    id: Number(id),
    owner_name,
    slug,
    title,
    short_text,
    cover_url,
    type,
    classification,
    traits: listOf(traits) as GameRow['traits'],
    published_at: published_at ?? null,
    created_at,
    min_price: Number(min_price),
    views_count: Number(views_count),
    downloads_count: Number(downloads_count),
    purchases_count: Number(purchases_count),
    earnings: listOf(earnings),
  };
}
