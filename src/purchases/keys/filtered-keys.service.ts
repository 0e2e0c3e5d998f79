import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit';
import { invalidGame } from '../../games/errors';
import { canEdit } from '../../games/visibility';
import { Database } from '../../platform/database/database';
import { longRead, statement } from '../../platform/database/statement';
import { selectKeyOwner } from '../ownership/key-owners';
import { GAME_OF_KEYS, type Seller } from './created-keys.service';
import type { CreatedKeyRow } from './download-key.row';

const KEYS_PER_SLICE = 500;

export interface ListedKey extends CreatedKeyRow {
  revoked: boolean;
  /** The email address that the key was created for. */
  email: string | null;
  /** Null: the key belongs to no account. */
  owner: string | null;
}

/** Maximum number of keys that are searched for a page with a filter. */
const MAX_SEARCHED_KEYS = 20_000;
/** Maximum number of keys that are revoked at once. */
export const MAX_REVOKED = 10_000;
const MAX_LABELS = { searched: 1000, listed: 100 };

export const KEY_STATES = ['unclaimed', 'claimed', 'revoked'] as const;
export type KeyState = (typeof KEY_STATES)[number];

const IS_UNCLAIMED = 'dk.email IS NULL AND dk.user_id IS NULL';
/** A key for an email address counts as claimed, because it isn't for the first player who redeems it. */
const STATE = `CASE WHEN dk.revoked_at IS NOT NULL THEN 'revoked' WHEN ${IS_UNCLAIMED} THEN 'unclaimed' ELSE 'claimed' END`;

/** Keys without a purchase in a range of IDs, and with a label. */
const matchesFilter = (from = '$from') =>
  `dk.purchase_id IS NULL AND dk.id BETWEEN ${from} AND $to AND ($label::text IS NULL OR dk.label = $label)`;

/**
 * No row: the user can't edit the game. A row without a key: no key matches. `searched_to`: the last key
 * that was searched for a label or state, if there are more keys.
 */
const CREATED_KEYS = longRead<{ title: string; searched_to: number | null } & (ListedKey | { id: null })>(
  'created_keys',
  `SELECT game.title, k.*, ended.searched_to
   FROM (${GAME_OF_KEYS}) game CROSS JOIN LATERAL (
     SELECT CASE WHEN count(*) = ${MAX_SEARCHED_KEYS} THEN min(id) END AS searched_to FROM (
       SELECT id FROM download_keys WHERE game_id = game.id AND purchase_id IS NULL AND id BETWEEN $from AND $to
         AND ($label::text IS NOT NULL OR $state::text IS NOT NULL)
       ORDER BY id DESC LIMIT ${MAX_SEARCHED_KEYS}) searched) ended
   LEFT JOIN LATERAL (
     SELECT dk.id, dk.game_id, dk.key, dk.label, dk.created_at, dk.downloads, dk.email,
       dk.revoked_at IS NOT NULL AS revoked, u.username AS owner
     FROM (SELECT * FROM download_keys dk
           WHERE game_id = game.id AND ${matchesFilter('greatest($from, ended.searched_to)')} AND ${STATE} = coalesce($state, ${STATE})
           ORDER BY id DESC LIMIT $limit) dk
     LEFT JOIN users u ON u.id = ${selectKeyOwner('dk')}) k ON true
   ORDER BY k.id DESC`,
  'user $user_id',
);

const LABELS_OF_KEYS = longRead<{ label: string }>(
  'created_key_labels',
  `SELECT DISTINCT k.label FROM games g CROSS JOIN LATERAL (
     SELECT label FROM download_keys WHERE game_id = g.id AND purchase_id IS NULL
     ORDER BY id DESC LIMIT ${MAX_LABELS.searched}) k
   WHERE g.id = $game_id AND ${canEdit('g', '$editor_id')} AND k.label IS NOT NULL ORDER BY 1 LIMIT ${MAX_LABELS.listed}`,
  'user $editor_id',
);

/** Live keys of a filter. No row: the user can't edit the game. */
const COUNT_LIVE = longRead<{ title: string; unclaimed: number; claimed: number; to: number | null }>(
  'created_keys_count',
  `SELECT game.title, k.* FROM (${GAME_OF_KEYS}) game CROSS JOIN LATERAL (
     SELECT count(*) FILTER (WHERE ${IS_UNCLAIMED}) AS unclaimed, count(*) FILTER (WHERE NOT (${IS_UNCLAIMED})) AS claimed,
       max(id) AS to
     FROM (SELECT * FROM download_keys dk WHERE game_id = game.id AND ${matchesFilter()} AND revoked_at IS NULL
           ORDER BY id LIMIT ${MAX_REVOKED}) dk) k`,
  'user $user_id',
);

/** Locks the keys in the order of their IDs, as the count of downloads does. No row: the user can't edit the game. */
const REVOKE_ALL = statement<{ revoked: number }>(
  'created_keys_revoke_all',
  `WITH game AS (${GAME_OF_KEYS}),
   found AS MATERIALIZED (
     SELECT dk.id FROM download_keys dk JOIN game ON game.id = dk.game_id
     WHERE ${matchesFilter()} AND dk.revoked_at IS NULL AND ${STATE} = ANY ($states::text[])
     ORDER BY dk.id LIMIT ${MAX_REVOKED} FOR UPDATE OF dk),
   revoked AS (UPDATE download_keys dk SET revoked_at = now() FROM found WHERE dk.id = found.id RETURNING dk.id)
   SELECT (SELECT count(*) FROM revoked) AS revoked FROM game`,
);

export interface KeyFilter {
  /** A range of IDs. */
  from?: number;
  to?: number;
  label?: string;
  state?: KeyState;
}

interface KeysPage {
  title: string;
  keys: ListedKey[];
  /** Where to continue the search; set if few keys match. */
  searched_to: number | null;
}

/** The keys of a game without a purchase that match a filter: sellers list, count and revoke them. */
@Injectable()
export class FilteredKeysService {
  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
  ) {}

  /** Revokes the keys in these states of a range and with a label, up to MAX_REVOKED. Returns their number. */
  async revokeAll(
    game_id: number,
    { from = 0, to = Number.MAX_SAFE_INTEGER, label }: KeyFilter,
    states: KeyState[],
    actor: Seller,
  ): Promise<number> {
    const values = { game_id, user_id: actor.user_id, from, to, label: label ?? null, states };
    const row = await this.database.row(REVOKE_ALL, values);
    if (!row) throw invalidGame();
    const { revoked: count } = row;
    if (count > 0) this.audit.record({ event: 'download_key.revoked', ...actor, game_id, count });
    return count;
  }

  /** The live keys of a filter, up to MAX_REVOKED, and the highest of their IDs. */
  async countLive(game_id: number, editor_id: number, filter: KeyFilter) {
    const { from = 0, to = Number.MAX_SAFE_INTEGER, label = null } = filter;
    const row = await this.database.row(COUNT_LIVE, { game_id, user_id: editor_id, from, to, label });
    if (!row) throw invalidGame();
    return row;
  }

  /** The labels of the newest keys. */
  async labels(game_id: number, editor_id: number): Promise<string[]> {
    return (await this.database.rows(LABELS_OF_KEYS, { game_id, editor_id })).map(({ label }) => label);
  }

  /** Newest first, with the title of the game. */
  async page(game_id: number, editor_id: number, filter: KeyFilter, limit: number): Promise<KeysPage> {
    const { from = 0, to = Number.MAX_SAFE_INTEGER, label = null, state = null } = filter;
    const values = { game_id, user_id: editor_id, from, to, limit, label, state };
    const rows = await this.database.rows(CREATED_KEYS, values);
    if (rows.length === 0) throw invalidGame();
    const { title, searched_to } = rows[0]!;
    const keys = rows.filter((row): row is typeof row & ListedKey => row.id !== null);
    return { title, keys, searched_to: keys.length < limit ? searched_to : null };
  }

  async *slices(game_id: number, editor_id: number, filter: KeyFilter): AsyncGenerator<ListedKey[]> {
    for (let last = filter.to; ;) {
      const { keys, searched_to } = await this.page(
        game_id,
        editor_id,
        { ...filter, to: last },
        KEYS_PER_SLICE,
      );
      yield keys;
      if (keys.length < KEYS_PER_SLICE && searched_to === null) return;
      last = (searched_to ?? keys.at(-1)!.id) - 1;
    }
  }
}
