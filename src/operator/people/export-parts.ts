import type { DataSource, EntityMetadata, EntityTarget, ObjectLiteral } from 'typeorm';
import { IdempotencyKey } from '../../idempotency/idempotency-key.entity';
import { UserEmail } from '../../auth/accounts/user-email.entity';
import { CollectionGame } from '../../collections/collection-game.entity';
import { personalRows, type PersonalRows } from '../../platform/database/personal-data';
import { DownloadKey } from '../../purchases/keys/download-key.entity';
import { selectKeyOwner } from '../../purchases/ownership/key-owners';
import { Purchase } from '../../purchases/purchase.entity';
import { CLAIMS } from './person';
import type { Scan } from './table-scan';
import { RESPONSES, DOWNLOAD_KEYS, COLLECTION_ENTRIES, PURCHASES } from './person-scans';

/** The first key of each type: the position of a row before all others. */
export const EXPORT_START = {
  bigint: '0',
  text: '',
  bytea: '',
  uuid: '00000000-0000-0000-0000-000000000000',
};

interface Described {
  /** The `type` of its lines. */
  type: string;
  entity: EntityTarget<ObjectLiteral>;
  columns?: PersonalRows['columns'];
  /** Rows in memory at once. */
  at_once: number;
}

/** Rows that an index finds by the account $user_id. */
export interface Owned extends Described {
  where: string;
  key: string;
  key_type: keyof typeof EXPORT_START;
}

/** Rows that a scan finds. */
export interface Scanned extends Described {
  scan: Scan<never>;
  where?: string;
}

const MANY = 100;
const LONG_TEXTS = 20;

/** The column of the primary key that isn't the account. */
function keyColumn({ name, primaryColumns }: EntityMetadata): Pick<Owned, 'key' | 'key_type'> {
  const column = primaryColumns.find(({ databaseName }) => databaseName !== 'user_id');
  if (!column || !(String(column.type) in EXPORT_START)) throw new Error(`${name} has no key for an export`);
  return { key: column.databaseName, key_type: column.type as Owned['key_type'] };
}

function ownedPart(metadata: EntityMetadata): Owned[] {
  const rows = personalRows(metadata.target);
  if (!rows) return [];
  const { type, where = 't.user_id = $user_id', columns, has_long_texts } = rows;
  const at_once = has_long_texts ? LONG_TEXTS : MANY;
  return [{ type, entity: metadata.target, where, columns, at_once, ...keyColumn(metadata) }];
}

const scanned = <Keys>(
  type: string,
  entity: EntityTarget<ObjectLiteral>,
  scan: Scan<Keys>,
  more: Partial<Scanned> = {},
): Scanned => ({ type, entity, scan: scan as Scan<never>, at_once: MANY, ...more });

const ifTheirs = (address: string) => `CASE WHEN ${address} = ANY (person.addresses) THEN ${address} END`;
const ifThem = (column: string) => `CASE WHEN ${column} = person.user_id THEN ${column} END`;

/** Rows that no index finds by the account. */
export const SCANNED: Scanned[] = [
  // If the person has no account, these are the users who entered the email address.
  scanned('user_email', UserEmail, CLAIMS, { where: 'person.user_id IS NULL' }),
  scanned('collection_game', CollectionGame, COLLECTION_ENTRIES, { at_once: LONG_TEXTS }),
  scanned('idempotency_key', IdempotencyKey, RESPONSES, {
    where: 't.user_id = person.user_id',
    at_once: LONG_TEXTS,
  }),
  // Other people related to the purchase or the key are left out.
  scanned('purchase', Purchase, PURCHASES, {
    columns: {
      user_id: ifThem('t.user_id'),
      game_ids: 'ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = t.id ORDER BY game_id)',
      reference: '(SELECT reference FROM purchase_references WHERE purchase_id = t.id)',
    },
  }),
  scanned('download_key', DownloadKey, DOWNLOAD_KEYS, {
    columns: {
      key: `CASE WHEN ${selectKeyOwner('t')} IS NOT DISTINCT FROM person.user_id THEN t.key END`,
      user_id: ifThem('t.user_id'),
      account_id: ifThem('t.account_id'),
      email: `CASE WHEN lower_ascii(t.email) = ANY (person.addresses) THEN t.email END`,
      purchase_email: ifTheirs('t.purchase_email'),
    },
  }),
];

/** All tables of an export: the account, other entities with `@PersonalData`, and the scanned ones. */
export function exportParts({ entityMetadatas }: DataSource): (Owned | Scanned)[] {
  const parts = entityMetadatas.flatMap(ownedPart).toSorted((a, b) => a.type.localeCompare(b.type, 'en'));
  const isAccount = ({ type }: Owned) => type.startsWith('user');
  return [...parts.filter(isAccount), ...parts.filter((part) => !isAccount(part)), ...SCANNED];
}
