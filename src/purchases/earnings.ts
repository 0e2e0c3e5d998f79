/**
 * What is kept of the sales of games, as SQL. `sales` is a relation of changes: `game_id`, `currency`, `purchases` and
 * `amount`, one row for a game and a currency. Whoever runs these has locked the games, in the order of their ids.
 */
export const countPurchases = (sales: string) => `
  UPDATE games t SET purchases_count = t.purchases_count + d.purchases
  FROM (SELECT game_id, sum(purchases) AS purchases FROM ${sales} changes GROUP BY game_id) d
  WHERE t.id = d.game_id AND d.purchases <> 0`;

/** The amounts above 0. */
export const addEarnings = (sales: string) => `
  INSERT INTO game_earnings AS e (game_id, currency, amount)
  SELECT game_id, currency, amount FROM ${sales} d WHERE amount > 0
  ON CONFLICT (game_id, currency) DO UPDATE SET amount = e.amount + excluded.amount`;

/** The amounts below 0. What comes to nothing is then dropped. */
export const takeEarnings = (sales: string) => `
  UPDATE game_earnings e SET amount = e.amount + d.amount
  FROM ${sales} d WHERE d.game_id = e.game_id AND d.currency = e.currency AND d.amount < 0`;

export const dropEmptyEarnings = (sales: string) => `
  DELETE FROM game_earnings e USING ${sales} d
  WHERE d.game_id = e.game_id AND d.currency = e.currency AND e.amount = 0`;
