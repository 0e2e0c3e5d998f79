import { lockCollectionsWith, removeFromCollections } from '../../collections/games-in-collections';
import { deleteUploads } from '../../uploads/uploads.service';
import { deleteBuilds } from '../../wharf/builds.service';

/** Rows that prevent the deletion of a game `t`, by their name in an error. */
export const DEPENDENTS = {
  purchase: 'purchase_games p WHERE p.game_id = t.id',
  'download key': 'download_keys k WHERE k.game_id = t.id',
  bundle: 'bundle_games b WHERE b.game_id = t.id',
};

export const lockBeforeDeletion = lockCollectionsWith;

/** Statements that delete what belongs to the games `t` of a FROM item. Foreign keys handle the rest. */
export const deleteParts = (games: string): string[] => [
  removeFromCollections(games),
  deleteUploads(games),
  deleteBuilds(games),
];
