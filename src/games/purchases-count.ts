/** Adds `purchases` of the rows `changes`, one per game, to the counts of games that the caller has locked. */
export const addToPurchasesCount = (changes: string) => `
  UPDATE games t SET purchases_count = t.purchases_count + d.purchases
  FROM ${changes} d WHERE t.id = d.game_id AND d.purchases <> 0 RETURNING t.id`;
