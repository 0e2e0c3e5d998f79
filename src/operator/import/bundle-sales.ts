import { BUNDLE_RECORD } from './record-types/bundle';
import { hasField } from './record-types/fields';
import { PURCHASE_RECORD, storedGames } from './record-types/purchase';
import type { TemporaryTable, TemporaryTables } from './temporary-tables';

/** The games of bundles, in ascending order like those of purchases. */
const bundleLists = (name: string): TemporaryTable => ({
  name,
  columns: [
    { name: 'id', sql: 'bigint' },
    { name: 'game_ids', sql: 'bigint[]' },
  ],
});
const SOLD_BUNDLES = bundleLists('sold_bundles');
const EXTENDED_BUNDLES = bundleLists('extended_bundles');

const STAGED_GAMES = `
  SELECT b.id, ARRAY(SELECT game_id FROM unnest(b.game_ids) AS game_id ORDER BY 1) AS game_ids
  FROM ${BUNDLE_RECORD.records.name} b`;

/** Compressing lists of thousands of games would take most of the time of an import. */
const avoidCompression = (tables: TemporaryTables) =>
  tables.query(`ALTER TABLE ${PURCHASE_RECORD.records.name} ALTER game_ids SET STORAGE EXTERNAL`);

/**
 * Completes the purchases that name a bundle instead of games: a new purchase gets the games of the bundle,
 * and a stored purchase of this bundle keeps its own.
 */
export async function completeBundleSales(tables: TemporaryTables): Promise<void> {
  const named = `SELECT bundle_id FROM ${PURCHASE_RECORD.records.name} WHERE bundle_id IS NOT NULL AND game_ids IS NULL`;
  const { rowCount } = await tables.query(`SELECT FROM bundles WHERE id IN (${named}) ORDER BY id FOR SHARE`);
  const isStaged = tables.rowCount(BUNDLE_RECORD.records) > 0;
  if (!rowCount && !isStaged) return;
  const stored = `
    SELECT b.id, ARRAY(SELECT game_id FROM bundle_games WHERE bundle_id = b.id ORDER BY 1) AS game_ids
    FROM bundles b WHERE b.id IN (${named}) ${isStaged ? `AND b.id NOT IN (SELECT id FROM ${BUNDLE_RECORD.records.name})` : ''}`;
  await tables.materialize(
    SOLD_BUNDLES,
    isStaged ? `${STAGED_GAMES} WHERE b.id IN (${named}) UNION ALL ${stored}` : stored,
  );
  await avoidCompression(tables);
  await tables.update(
    PURCHASE_RECORD.records,
    { game_ids: 't.game_ids' },
    {
      table: SOLD_BUNDLES.name,
      on: `t.id = s.bundle_id AND s.game_ids IS NULL
        AND NOT EXISTS (SELECT FROM purchases p WHERE p.id = s.id AND p.bundle_id = s.bundle_id)`,
    },
  );
}

/** Whether a purchase `p` gives its buyer access, or may do so later. */
const isOpen = `p.status IN ('complete', 'pending')`;

/**
 * Gives the games of bundles with `extend` to their earlier buyers: adds the games to purchases in the
 * stream, and adds other stored purchases to the stream. Sales lock the bundle too, so none of them is
 * missed.
 */
export async function extendPurchases(tables: TemporaryTables): Promise<void> {
  if (!tables.rowCount(BUNDLE_RECORD.records)) return;
  const extended = `SELECT id FROM ${BUNDLE_RECORD.records.name} WHERE extend`;
  const { rowCount } = await tables.query(
    `SELECT FROM bundles WHERE id IN (${extended}) ORDER BY id FOR NO KEY UPDATE`,
  );
  if (!rowCount) return;
  await tables.materialize(EXTENDED_BUNDLES, `${STAGED_GAMES} WHERE b.extend`);
  if (!tables.rowCount(PURCHASE_RECORD.records)) await tables.createEmpty(PURCHASE_RECORD.records);
  await avoidCompression(tables);
  await tables.query(`
    SELECT FROM purchases p WHERE p.bundle_id IN (SELECT id FROM ${EXTENDED_BUNDLES.name}) AND ${isOpen}
    ORDER BY p.id FOR NO KEY UPDATE`);
  await extendStaged(tables);
  await stageOthers(tables);
  const { rows: counts } = await tables.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM ${PURCHASE_RECORD.records.name}`,
  );
  await tables.setRowCount(PURCHASE_RECORD.records, counts[0]!.count, ['line', 'id', 'user_id', 'bundle_id']);
}

/** The IDs of the games in a list, and of those of the extended bundle `t`. */
const withExtension = (games: string) =>
  `ARRAY(SELECT game_id FROM unnest(${games}) AS game_id UNION SELECT game_id FROM unnest(t.game_ids) AS game_id ORDER BY 1)`;

/** Adds the games to the purchases in the stream that don't list games themselves. */
const extendStaged = (tables: TemporaryTables) =>
  tables.update(
    PURCHASE_RECORD.records,
    { game_ids: withExtension('s.game_ids') },
    {
      table: EXTENDED_BUNDLES.name,
      on: `NOT (${hasField(PURCHASE_RECORD.fields, 'game_id')})
        AND EXISTS (SELECT FROM purchases p WHERE p.id = s.id AND p.bundle_id = t.id AND ${isOpen})`,
    },
  );

/** Adds the other stored purchases, with the games, to the stream. */
async function stageOthers(tables: TemporaryTables): Promise<void> {
  const { name } = PURCHASE_RECORD.records;
  // Absent optional fields keep their stored values, so only the required ones are needed.
  const required = PURCHASE_RECORD.fields.filter((field) => field.required && field.name !== 'game_id');
  const columns = required.flatMap((field) => field.columns.map((column) => column.name));
  const deleted = tables.rowCount(PURCHASE_RECORD.deleted)
    ? `UNION ALL SELECT id FROM ${PURCHASE_RECORD.deleted.name}`
    : '';
  // Buyers of a bundle usually have the same games, so that each list is extended once for all of them.
  await tables.query(`
    WITH stored AS (
      SELECT p.id, p.bundle_id, ${storedGames('p')} AS game_ids
      FROM purchases p
      WHERE p.bundle_id IN (SELECT id FROM ${EXTENDED_BUNDLES.name}) AND ${isOpen}
        AND p.id NOT IN (SELECT id FROM ${name} WHERE id IS NOT NULL ${deleted})
    ), lists AS MATERIALIZED (
      SELECT l.*, ${withExtension('l.game_ids')} AS extended
      FROM (SELECT bundle_id, game_ids, array_agg(id) AS purchases FROM stored GROUP BY bundle_id, game_ids) l
      JOIN ${EXTENDED_BUNDLES.name} t ON t.id = l.bundle_id
    )
    INSERT INTO ${name} (line, present, with_key, game_ids, ${columns.join(', ')})
    SELECT b.line, 0, false, l.extended, ${columns.map((column) => `p.${column}`).join(', ')}
    FROM lists l
    JOIN ${BUNDLE_RECORD.records.name} b ON b.id = l.bundle_id
    CROSS JOIN unnest(l.purchases) AS bought (id)
    JOIN purchases p ON p.id = bought.id
    WHERE l.extended <> l.game_ids`);
}
