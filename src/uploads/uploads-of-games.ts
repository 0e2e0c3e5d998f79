/** Deletes the uploads of the games `t` of a FROM item. */
export const deleteUploadsOf = (games: string) =>
  `DELETE FROM uploads f USING ${games} WHERE f.game_id = t.id`;
