import type { Pool } from 'pg';
import { sanitizeHtml } from '../../src/collections/html';
import { groupByPeriod } from '../../src/purchases/earnings/earnings';
import { unsafeMarkup } from './model/safe-html';
import { Finding } from './oracles';
import { CANARY } from '../../test/support/world/world';

/** The expected totals of days and months. */
export const SALES_BY_PERIOD = `
  SELECT game_id, unit, first_day, currency, purchases, amount
  FROM ${groupByPeriod('(SELECT game_id, currency, day, 1 AS purchases, amount FROM purchase_shares)')} p`;

/** Statements that find rows which no request may leave behind. */
const WRONG: Record<string, string> = {
  'games_count is not the number of entries': `
    SELECT id FROM collections c
    WHERE games_count <> (SELECT count(*) FROM collection_games e WHERE e.collection_id = c.id)`,
  'positions of a bundle are not 1 to its number of games': `
    SELECT id FROM bundles b
    WHERE NOT EXISTS (
      SELECT FROM bundle_games e WHERE e.bundle_id = b.id HAVING count(*) = games_count AND max(position) = games_count)`,
  'a title is not normalized': `
    SELECT id FROM collections WHERE title <> btrim(title) OR length(title) NOT BETWEEN 1 AND 60`,
  'a collection was updated before it was created':
    'SELECT id FROM collections WHERE updated_at < created_at',
  'a profile shows a collection that the user cannot edit': `
    SELECT p.* FROM profile_collections p JOIN collections c ON c.id = p.collection_id
    WHERE c.user_id <> p.user_id
      AND NOT EXISTS (SELECT FROM collection_admins a WHERE a.collection_id = c.id AND a.user_id = p.user_id)`,
  'purchases_count is not the number of purchases': `
    SELECT id FROM games g
    WHERE purchases_count <> (SELECT count(*) FROM purchase_shares s WHERE s.game_id = g.id)`,
  'earnings are not the sum of the shares': `
    SELECT * FROM (SELECT game_id, currency, sum(amount) AS amount FROM purchase_shares GROUP BY 1, 2 HAVING sum(amount) > 0) s
    FULL JOIN game_earnings e USING (game_id, currency) WHERE s.amount IS DISTINCT FROM e.amount`,
  'totals of days and months are not the sum of the shares': `
    SELECT * FROM (${SALES_BY_PERIOD}) p
    FULL JOIN sales_periods s USING (game_id, unit, first_day, currency)
    WHERE (p.purchases, p.amount) IS DISTINCT FROM (s.purchases, s.amount)`,
  'a game of a purchase has another buyer': `
    SELECT pg.* FROM purchase_games pg JOIN purchases p ON p.id = pg.purchase_id
    WHERE (pg.user_id, pg.email) IS DISTINCT FROM (p.user_id, lower_ascii(p.email))`,
  'a download key has another buyer': `
    SELECT k.id FROM download_keys k LEFT JOIN purchases p ON p.id = k.purchase_id
    WHERE (k.account_id, k.purchase_email) IS DISTINCT FROM (coalesce(k.user_id, p.user_id), lower_ascii(p.email))`,
  'a game has another owner name': `
    SELECT g.id FROM games g JOIN users u ON u.id = g.user_id WHERE g.owner_name <> u.username`,
  'an idempotency key has no response': 'SELECT credential FROM idempotency_keys WHERE answer IS NULL',
  'a key remains valid after its grant': `
    SELECT k.id FROM api_keys k JOIN oauth_grants g ON g.id = k.grant_id
    WHERE g.revoked_at IS NOT NULL AND k.revoked_at IS NULL`,
  'a user has two live grants for one application': `
    SELECT user_id FROM oauth_grants WHERE revoked_at IS NULL GROUP BY user_id, client_id HAVING count(*) > 1`,
  'a constraint is not valid': `SELECT conname FROM pg_constraint WHERE NOT convalidated`,
  'a transaction was left open': `
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND state_change < now() - interval '5 s'`,
};

/** Tables whose rows could contain a secret in plain text. */
const KEEP_SECRETS = [
  'api_keys',
  'users',
  'sessions',
  'audit_events',
  'idempotency_keys',
  'signing_keys',
  'oauth_refresh_tokens',
];

/** Foreign keys are read from the catalog, so that new ones are included. */
const FOREIGN_KEYS = `
  SELECT conrelid::regclass::text AS child, confrelid::regclass::text AS parent,
    (SELECT string_agg(format('c.%I = p.%I', a.attname, b.attname), ' AND ')
     FROM unnest(conkey, confkey) AS pair (mine, theirs)
     JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = pair.mine
     JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = pair.theirs) AS matching,
    (SELECT string_agg(format('c.%I IS NOT NULL', a.attname), ' AND ')
     FROM unnest(conkey) AS mine JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = mine) AS given
  FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace`;

/** Checks conditions that the rows must meet after any requests. */
export async function checkInvariants(sql: Pool): Promise<void> {
  const none = async (what: string, text: string) => {
    const { rows } = await sql.query(`${text} LIMIT 5`);
    if (rows.length > 0) throw new Finding('invariant', what, JSON.stringify(rows));
  };
  for (const [what, text] of Object.entries(WRONG)) await none(what, text);
  const { rows: references } =
    await sql.query<Record<'child' | 'parent' | 'matching' | 'given', string>>(FOREIGN_KEYS);
  for (const { child, parent, matching, given } of references)
    await none(
      `a row of ${child} references a missing row of ${parent}`,
      `SELECT c.* FROM ${child} c WHERE ${given} AND NOT EXISTS (SELECT FROM ${parent} p WHERE ${matching})`,
    );
  for (const table of KEEP_SECRETS) {
    const withoutHints = table === 'api_keys' ? `to_jsonb(t) - 'hint' - 'label'` : 'to_jsonb(t)';
    await none(
      `${table} contains a secret in plain text`,
      `SELECT ctid FROM ${table} t WHERE (${withoutHints})::text LIKE '%${CANARY}%'`,
    );
  }
  await checkHtml(sql);
}

async function checkHtml(sql: Pool): Promise<void> {
  const { rows } = await sql.query<{ html: string }>(
    `SELECT DISTINCT description AS html FROM collections WHERE description IS NOT NULL
     UNION SELECT DISTINCT blurb FROM collection_games WHERE blurb IS NOT NULL LIMIT 5000`,
  );
  for (const { html } of rows) {
    const why = unsafeMarkup(html);
    if (why) throw new Finding('invariant', 'stored HTML is not safe', `${why}\n${html.slice(0, 400)}`);
    if (sanitizeHtml(html) !== html)
      throw new Finding('invariant', 'sanitizing stored HTML changes it', html.slice(0, 400));
  }
}
