/** SQL that deletes the builds of the games `t`, which the FROM item `games` selects. */
export const deleteBuildsOf = (games: string) => `DELETE FROM builds b USING ${games} WHERE b.game_id = t.id`;
