import { forbidden } from '../auth/access/errors';
import { apiError } from '../platform/errors/api-error';
import { canEdit, isPublic } from '../games/visibility';
import { selectOwnedKeys, newestOfGame, selectKeyOwner } from '../purchases/ownership/key-owners';
import { hasBought } from '../purchases/library/ownership.service';
import type { UPLOAD_TRAITS } from './upload.entity';

export interface AccessRow {
  edits: boolean;
  /** The result of `/games/GAME_ID/ownership`. */
  owns: boolean;
  is_free: boolean;
  held_key: number | null;
  /** The requested key, if it is a live key of the game that belongs to the user. */
  requested_key: number | null;
}

export const ACCESS_COLUMNS =
  'access.edits, access.owns, g.min_price = 0 AS is_free, access.held_key, access.requested_key';

/**
 * Joins the user's permissions for the game `g`, with the parameters `$user_id` and `$download_key_id`. With
 * OFFSET 0, each part runs once.
 */
export const JOIN_ACCESS = `
  CROSS JOIN LATERAL (
    SELECT part.*, part.edits OR part.held_key IS NOT NULL OR ${hasBought('$user_id')} AS owns
    FROM (
      SELECT ${canEdit('g', '$user_id')} AS edits,
        (SELECT held.id FROM (${selectOwnedKeys('$user_id', newestOfGame('g'))}) held ORDER BY held.created_at DESC, held.id DESC LIMIT 1)
          AS held_key,
        (SELECT dk.id FROM download_keys dk
         WHERE dk.id = $download_key_id::bigint AND dk.game_id = g.id AND dk.revoked_at IS NULL AND ${selectKeyOwner('dk')} = $user_id) AS requested_key
      OFFSET 0) part
    OFFSET 0) access`;

/** Whether the user can view or owns the game. Owners of a key of a restricted game own it. */
export const MAY_SEE = `(access.owns OR ${isPublic('g')})`;

type Traits = readonly (typeof UPLOAD_TRAITS)[number][];

/** Whether the user may download a file of the game; throws if the requested key doesn't let them. */
export function mayDownload(access: AccessRow, traits: Traits, download_key_id: number | undefined): boolean {
  if (access.edits || access.is_free || traits.includes('demo')) return true;
  requireOwnKey(access, download_key_id);
  return download_key_id !== undefined || access.owns;
}

/** Throws if the requested key doesn't let the user download. Editors and players of a free game need none. */
export function requireOwnKey(
  { edits, is_free, requested_key }: AccessRow,
  download_key_id: number | undefined,
): void {
  if (download_key_id !== undefined && requested_key === null && !edits && !is_free)
    throw apiError(404, 'invalid download_key_id');
}

export function requireDownload(
  access: AccessRow,
  traits: Traits,
  download_key_id: number | undefined,
): void {
  if (!mayDownload(access, traits, download_key_id)) throw mustBuy();
}

const mustBuy = () => forbidden('you must buy this game to download');

/** The key whose download count increases. */
export const keyUsed = ({ edits, requested_key, held_key }: AccessRow): number | null =>
  requested_key ?? (edits ? null : held_key);
