import type { Packed } from '../../platform/database/packed-row';
import { read, statement } from '../../platform/database/statement';
import { isErased } from '../../auth/accounts/erased-users';
import { selectOwnedKeys, newestOfGame } from '../ownership/key-owners';
import { boughtBy } from '../purchases.service';
import { OWNED_KEY_ROW } from './owned-key.row';

/*
 * Gives a player a key for a game that they bought without one. The user is locked first, so that of concurrent claims
 * only one creates a key.
 */

export const LOCK_CLAIMER = statement(
  'claim_lock_user',
  'SELECT FROM users WHERE id = $user_id FOR NO KEY UPDATE',
  'user $user_id',
);

/**
 * Creates a key of the user for the game, for their newest complete purchase of the game, unless they have one.
 * The purchase and its game are locked, so that a refund or an import that changes the purchase either prevents the key
 * or finds it. `condition` is another one on the user and the game.
 */
export const claimKey = (name: string, condition: string) =>
  statement<{ id: number }>(
    name,
    `WITH bought AS MATERIALIZED (
       SELECT p.id, lower_ascii(p.email) AS email
       FROM (SELECT $game_id::bigint AS id) g
       JOIN purchase_games pg ON pg.game_id = g.id
       JOIN purchases p ON p.id = pg.purchase_id AND p.status = 'complete'
       WHERE p.id IN (${boughtBy('$user_id')}) AND NOT EXISTS (${selectOwnedKeys('$user_id', newestOfGame('g'))})
         AND EXISTS (SELECT FROM users u WHERE u.id = $user_id AND NOT ${isErased('u')}) AND ${condition}
       ORDER BY p.created_at DESC, p.id DESC LIMIT 1 FOR NO KEY UPDATE OF p FOR KEY SHARE OF pg)
     INSERT INTO download_keys (key, game_id, purchase_id, user_id, account_id, purchase_email, created_at, claimed_at)
     SELECT $key, $game_id, b.id, $user_id, $user_id, b.email, now(), now() FROM bought b RETURNING id`,
  );

/** The user's newest live key of the game. */
export const KEY_OF_GAME = read<Packed>(
  'claimed_key',
  `SELECT ${OWNED_KEY_ROW.sql}
   FROM (SELECT $game_id::bigint AS id) wanted
   CROSS JOIN LATERAL (SELECT id FROM (${selectOwnedKeys('$user_id', newestOfGame('wanted'))}) found
                       ORDER BY created_at DESC, id DESC LIMIT 1) newest
   JOIN download_keys k ON k.id = newest.id
   JOIN games g ON g.id = k.game_id
   JOIN users u ON u.id = g.user_id`,
);
