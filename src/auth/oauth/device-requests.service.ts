import { createHmac, randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, IsNull, Raw, type Repository } from 'typeorm';
import { Database } from '../../platform/database/database';
import { statement } from '../../platform/database/statement';
import { GrantsService } from './grants.service';
import { OauthCodesService } from './oauth-codes.service';
import { OauthDeviceRequest } from './oauth-device-request.entity';
import { invalidGrant } from './oauth-errors';
import { sha256, randomToken } from '../accounts/encryption';

// The alphabet of RFC 8628, section 6.1. It has no vowels, so codes can't form words.
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
export const LIFETIME_SECONDS = 600;
const INTERVAL_SECONDS = 5;
const MAX_INTERVAL_SECONDS = 60;

type Poll =
  | { status: 'pending' | 'slow_down'; interval: number }
  | { status: 'approved'; code: string; code_challenge: string | null }
  | { status: 'denied' | 'expired' };

type PollRow = Pick<OauthDeviceRequest, 'scopes' | 'code_challenge' | 'interval_seconds' | 'grant_id'> &
  Record<'too_fast' | 'expired' | 'denied', boolean>;

/** SQL condition: undecided and not expired. */
const pending = (user_code: string) => ({
  user_code,
  denied_at: IsNull(),
  grant_id: IsNull(),
  expires_at: Raw((column) => `${column} > now()`),
});

// The rows that a request refers to are locked before it, in the order in which deletions lock them.
const LOCK_APPLICATION = statement(
  'lock_application_of_device',
  `SELECT FROM oauth_applications
   WHERE client_id = (SELECT client_id FROM oauth_device_requests WHERE user_code = $user_code) FOR KEY SHARE`,
);
const LOCK_GRANT = statement(
  'lock_grant_of_device',
  `SELECT FROM oauth_grants
   WHERE id = (SELECT grant_id FROM oauth_device_requests WHERE device_code_hash = $device_code_hash) FOR KEY SHARE`,
);

/** One second of tolerance for clocks and networks. */
const POLL_REQUEST = statement<PollRow>(
  'poll_device_request',
  `SELECT scopes, code_challenge, interval_seconds, expires_at <= now() AS expired, grant_id,
     denied_at IS NOT NULL OR EXISTS (
       SELECT FROM oauth_grants g WHERE g.id = grant_id AND g.revoked_at IS NOT NULL) AS denied,
     coalesce(polled_at > clock_timestamp() - make_interval(secs => interval_seconds - 1), false) AS too_fast
   FROM oauth_device_requests WHERE device_code_hash = $device_code_hash AND client_id = $client_id FOR UPDATE`,
);

const CREATE_REQUEST = statement<{ user_code: string }>(
  'create_device_request',
  `INSERT INTO oauth_device_requests (device_code_hash, user_code, client_id, scopes, code_challenge, interval_seconds, expires_at)
   VALUES ($device_code_hash, $user_code, $client_id, $scopes, $code_challenge, ${INTERVAL_SECONDS},
     now() + make_interval(secs => ${LIFETIME_SECONDS}))
   ON CONFLICT (user_code) DO NOTHING RETURNING user_code`,
);

@Injectable()
export class DeviceRequestsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(OauthDeviceRequest) private readonly requests: Repository<OauthDeviceRequest>,
    private readonly grants: GrantsService,
    private readonly codes: OauthCodesService,
  ) {}

  async create(client_id: string, scopes: string[], code_challenge?: string) {
    const device_code = randomToken();
    const request = {
      device_code_hash: sha256(device_code),
      client_id,
      scopes,
      code_challenge: code_challenge ?? null,
    };
    for (;;) {
      const user_code = newUserCode();
      if (await this.database.row(CREATE_REQUEST, { ...request, user_code }))
        return { device_code, user_code, expires_in: LIFETIME_SECONDS, interval: INTERVAL_SECONDS };
    }
  }

  /** Finds an undecided request, with its app and the username of the app's owner. */
  pending(db: EntityManager, user_code: string): Promise<OauthDeviceRequest | null> {
    return db
      .createQueryBuilder(OauthDeviceRequest, 'd')
      .innerJoinAndSelect('d.application', 'a')
      .innerJoin('a.user', 'u')
      .addSelect(['u.id', 'u.username'])
      .where(pending(user_code))
      .getOne();
  }

  approve(user_id: number, user_code: string, may_start_games: boolean) {
    return this.database.transaction(
      async (db) => {
        await this.database.rows(LOCK_APPLICATION, { user_code }, db);
        const lock = { mode: 'pessimistic_write' } as const;
        const request = await db.findOne(OauthDeviceRequest, { where: pending(user_code), lock });
        if (!request) return undefined;
        const { client_id, scopes, device_code_hash } = request;
        const consent = { scopes, may_start_games, implicit_allowed: false };
        const grant = await this.grants.add(db, user_id, client_id, consent);
        await db.update(OauthDeviceRequest, { device_code_hash }, { grant_id: grant.id });
        return { client_id, scopes };
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  async deny(user_code: string): Promise<boolean> {
    return (await this.requests.update(pending(user_code), { denied_at: () => 'now()' })).affected === 1;
  }

  /** Returns the user's decision. A device that polls too fast gets a longer interval. */
  poll(client_id: string, device_code: string): Promise<Poll> {
    const device_code_hash = sha256(device_code);
    return this.database.transaction(
      async (db) => {
        await this.database.rows(LOCK_GRANT, { device_code_hash }, db);
        const row = await this.database.row(POLL_REQUEST, { device_code_hash, client_id }, db);
        if (!row) throw invalidGrant();
        if (row.denied) return { status: 'denied' };
        if (row.expired) return { status: 'expired' };
        if (row.grant_id !== null) {
          const code = codeFor(device_code);
          const { scopes, code_challenge } = row;
          const request = { scopes, code_challenge: code_challenge ?? undefined };
          const unused = await this.codes.store(db, row.grant_id, code, request);
          return unused ? { status: 'approved', code, code_challenge } : { status: 'expired' };
        }
        const interval = row.too_fast
          ? Math.min(row.interval_seconds + INTERVAL_SECONDS, MAX_INTERVAL_SECONDS)
          : row.interval_seconds;
        const polled = { polled_at: () => 'clock_timestamp()', interval_seconds: interval };
        await db.update(OauthDeviceRequest, { device_code_hash }, polled);
        return { status: row.too_fast ? 'slow_down' : 'pending', interval };
      },
      { concurrencyKey: `device code ${device_code_hash.toString('hex')}` },
    );
  }
}

/** The code is derived from the device code, so it isn't stored. */
const codeFor = (device_code: string) => createHmac('sha256', device_code).update('code').digest('base64url');

function newUserCode(): string {
  const letters = Array.from({ length: 8 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return `${letters.slice(0, 4)}-${letters.slice(4)}`;
}

/** Normalizes a code that a user typed in any case, with or without the dash. */
export function parseUserCode(typed: string): string {
  const letters = typed.toUpperCase().replace(/[^A-Z]/g, '');
  return `${letters.slice(0, 4)}-${letters.slice(4)}`;
}
