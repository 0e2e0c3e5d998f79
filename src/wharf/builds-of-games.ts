/** Deletes the builds of the games `t` of a FROM item. */
export const deleteBuildsOf = (games: string) => `DELETE FROM builds b USING ${games} WHERE b.game_id = t.id`;
