import type { EntityTarget, ObjectLiteral } from 'typeorm';
import { OauthApplication } from '../../auth/accounts/oauth-application.entity';
import { OauthCode } from '../../auth/oauth/oauth-code.entity';
import { OauthDeviceRequest } from '../../auth/oauth/oauth-device-request.entity';
import { OauthGrant } from '../../auth/accounts/oauth-grant.entity';
import { OauthRefreshToken } from '../../auth/oauth/oauth-refresh-token.entity';
import { Attempt } from '../../auth/sign-in/attempt.entity';
import { Session } from '../../auth/sign-in/session.entity';
import { ApiKey } from '../../auth/keys/api-key.entity';
import { AuditEventRow } from '../../audit/audit-event.entity';
import { CollectionAdmin } from '../../collections/collection-admin.entity';
import { CollectionGame } from '../../collections/collection-game.entity';
import { Collection } from '../../collections/collection.entity';
import { IdempotencyKey } from '../../idempotency/idempotency-key.entity';
import { ProfileCollection } from '../../collections/profile-collection.entity';
import { GameAdmin } from '../../games/game-admin.entity';
import { Game } from '../../games/game.entity';
import { ownerOf } from '../../purchases/ownership/key-owners';
import { DownloadKey } from '../../purchases/keys/download-key.entity';
import { Purchase } from '../../purchases/purchase.entity';
import { UserEmail } from '../../auth/accounts/user-email.entity';
import { User } from '../../auth/accounts/user.entity';
import { WebhookAttempt } from '../webhooks/webhook-attempt.entity';
import { Webhook } from '../webhooks/webhook.entity';
import { CLAIMS } from './person';
import type { Scan } from './scan';
import { RESPONSES, DOWNLOAD_KEYS, ENTRIES, PURCHASES } from './scans';

interface Described {
  /** The `type` of its lines. */
  type: string;
  entity: EntityTarget<ObjectLiteral>;
  /** By name, SQL that replaces or adds a column of `t`; null omits the column. Hashes are always omitted. */
  columns?: Record<string, string | null>;
  /** Rows in memory at once: fewer for tables with long texts. */
  at_once: number;
}

/** Rows that an index finds by the account $1. */
export interface Owned extends Described {
  where: string;
  key: string;
  key_type: 'bigint' | 'text' | 'bytea';
}

/** Rows that a scan finds. */
export interface Scanned extends Described {
  scan: Scan<never>;
  where?: string;
}

const MANY = 100;
const LONG_TEXTS = 20;

const owned = (type: string, entity: EntityTarget<ObjectLiteral>, more: Partial<Owned> = {}): Owned => ({
  type,
  entity,
  where: 't.user_id = $1',
  key: 'id',
  key_type: 'bigint',
  at_once: MANY,
  ...more,
});

const scanned = <Keys>(
  type: string,
  entity: EntityTarget<ObjectLiteral>,
  scan: Scan<Keys>,
  more: Partial<Scanned> = {},
): Scanned => ({ type, entity, scan: scan as Scan<never>, at_once: MANY, ...more });

const byHash = (key: string) => ({ key, key_type: 'bytea' }) as const;
const OF_GRANTS = 't.grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)';
const ifTheirs = (address: string) => `CASE WHEN ${address} = ANY (person.addresses) THEN ${address} END`;
const ifThem = (column: string) => `CASE WHEN ${column} = person.user_id THEN ${column} END`;

/** All tables of an export. A new column is exported without being listed here. */
export const PARTS: (Owned | Scanned)[] = [
  owned('user', User, {
    where: 't.id = $1',
    columns: { password_hash: null, has_password: 't.password_hash IS NOT NULL' },
  }),
  // An account's own email addresses; without an account, the users who entered the address.
  owned('user_email', UserEmail, { key: 'email', key_type: 'text' }),
  scanned('user_email', UserEmail, CLAIMS, { where: 'person.user_id IS NULL' }),
  owned('api_key', ApiKey, {
    columns: {
      requests: '(SELECT json_object_agg(day, requests) FROM api_key_requests WHERE api_key_id = t.id)',
    },
  }),
  owned('session', Session, byHash('token_hash')),
  owned('oauth_application', OauthApplication, { key: 'client_id', key_type: 'text' }),
  owned('oauth_grant', OauthGrant),
  owned('oauth_code', OauthCode, { where: OF_GRANTS, ...byHash('code_hash') }),
  owned('oauth_refresh_token', OauthRefreshToken, { where: OF_GRANTS, ...byHash('token_hash') }),
  owned('oauth_device_request', OauthDeviceRequest, { where: OF_GRANTS, ...byHash('device_code_hash') }),
  owned('webhook', Webhook),
  owned('webhook_attempt', WebhookAttempt, {
    where: 't.webhook_id IN (SELECT id FROM webhooks WHERE user_id = $1)',
  }),
  owned('attempts', Attempt, {
    where: `t.subject IN (SELECT sha256(convert_to(guess || $1::bigint, 'UTF8'))
      FROM unnest('{"user ","device code by ","download key by "}'::text[]) AS guess)`,
    ...byHash('subject'),
  }),
  owned('audit_event', AuditEventRow),
  owned('game', Game, { columns: { type: null, game_type: 't.type' } }),
  owned('game_admin', GameAdmin, { key: 'game_id' }),
  owned('collection', Collection, { at_once: LONG_TEXTS }),
  owned('collection_admin', CollectionAdmin, { key: 'collection_id' }),
  owned('profile_collection', ProfileCollection, { key: 'collection_id' }),
  scanned('collection_game', CollectionGame, ENTRIES, { at_once: LONG_TEXTS }),
  scanned('idempotency_key', IdempotencyKey, RESPONSES, {
    where: 't.user_id = person.user_id',
    at_once: LONG_TEXTS,
  }),
  // Without other people related to the purchase or the key.
  scanned('purchase', Purchase, PURCHASES, {
    columns: {
      user_id: ifThem('t.user_id'),
      game_ids: 'ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = t.id ORDER BY game_id)',
      reference: '(SELECT reference FROM purchase_references WHERE purchase_id = t.id)',
    },
  }),
  scanned('download_key', DownloadKey, DOWNLOAD_KEYS, {
    columns: {
      key: `CASE WHEN ${ownerOf('t')} IS NOT DISTINCT FROM person.user_id THEN t.key END`,
      user_id: ifThem('t.user_id'),
      account_id: ifThem('t.account_id'),
      email: `CASE WHEN lower_ascii(t.email) = ANY (person.addresses) THEN t.email END`,
      purchase_email: ifTheirs('t.purchase_email'),
    },
  }),
];
