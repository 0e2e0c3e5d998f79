import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { InjectRepository } from '@nestjs/typeorm';
import { In, LessThan, type Repository } from 'typeorm';
import { Clock } from '../../platform/config/clock';
import { parsePrivateKeys } from '../../platform/config/private-keys';
import { Settings } from '../../platform/config/settings';
import { Database } from '../../platform/database/database';
import { OperatorError } from '../../platform/errors/operator-error';
import { classifyFault } from '../../platform/database/sqlstates';
import { read, statement } from '../../platform/database/statement';
import { listPeppers } from '../keys/api-key';
import { seal, unseal } from '../accounts/encryption';
import { configuredKey, type Key, thumbprint, formatSeconds } from './signing-key';
import { SigningKey } from './signing-key.entity';

/** How long clients may cache the published keys. */
export const PUBLISHED_FOR_SECONDS = 300;
// A new key signs only when every cache has it.
const PUBLISHED_AHEAD_SECONDS = 2 * PUBLISHED_FOR_SECONDS;
const RELOAD_INTERVAL_MS = 10_000;
// Tokens may name any key: unknown keys cause at most one statement in this time.
const MIN_RELOAD_INTERVAL_MS = 200;
/** How much clocks may differ. */
export const LEEWAY_SECONDS = 60;
// Another replica may sign with the previous key until it reloads its keys, and its clock may differ.
const GRACE_SECONDS = RELOAD_INTERVAL_MS / 1000 + 2 * LEEWAY_SECONDS;

const VERIFIES_UNTIL = `(extract(epoch FROM lead(k.signs_from) OVER (ORDER BY k.signs_from, k.kid))::float8
  + k.token_lifetime + ${GRACE_SECONDS})`;

/** Times are seconds since 1970. */
type Row = Pick<SigningKey, 'kid' | 'public_key' | 'private_key' | 'token_lifetime'> & {
  signs_from: number;
  /** Null: no key signs after this one. */
  verifies_until: number | null;
  /** Whether the last token of the key has expired, by the clock of the database. */
  expired: boolean;
};

const SIGNING_KEYS = read<Row>(
  'signing_keys',
  `SELECT kid, public_key, private_key, token_lifetime, extract(epoch FROM signs_from)::float8 AS signs_from,
     ${VERIFIES_UNTIL} AS verifies_until,
     coalesce(${VERIFIES_UNTIL} <= extract(epoch FROM now()), false) AS expired
   FROM signing_keys k ORDER BY k.signs_from, kid`,
);

const LOCK_SIGNING_KEYS = statement(
  'lock_signing_keys',
  'LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE',
);

/** The keys that sign and verify JWTs, from the database or the SIGNING_KEYS setting. */
@Injectable()
export class SigningKeysService {
  private readonly log = new Logger(SigningKeysService.name);
  private readonly peppers: string[];
  private readonly configured: Key[] | undefined;
  private keys = new Map<string, Key>();
  /** A reload that has not started. */
  private next: Promise<void> | undefined;
  /** Resolves after the last reload. */
  private reloads = Promise.resolve();
  private lastReload = -Infinity;

  constructor(
    private readonly database: Database,
    @InjectRepository(SigningKey) private readonly signingKeys: Repository<SigningKey>,
    private readonly settings: Settings,
    private readonly clock: Clock,
  ) {
    this.peppers = listPeppers(settings);
    this.configured = parsePrivateKeys(settings.SIGNING_KEYS ?? '')?.map(configuredKey);
    if (this.configured) this.remember(this.configured);
  }

  /** All keys with which valid tokens are signed, now or soon. */
  async published(): Promise<Key[]> {
    await this.ready();
    return [...this.keys.values()].filter((key) => key.verifies_until > this.now());
  }

  async verifier(kid: string): Promise<KeyObject | undefined> {
    await this.ready();
    if (!this.keys.has(kid) && !this.configured) await this.reload(MIN_RELOAD_INTERVAL_MS);
    const key = this.keys.get(kid);
    return key && key.verifies_until > this.now() ? key.publicKey : undefined;
  }

  /** The key that signs a token with this lifetime. */
  async signer(lifetime_seconds: number): Promise<Pick<Key, 'kid' | 'privateKey'>> {
    await this.ready();
    const key = this.current();
    if (!key) throw new Error('there is no signing key');
    if (key.token_lifetime < lifetime_seconds) {
      await this.signingKeys.update(
        { kid: key.kid, token_lifetime: LessThan(lifetime_seconds) },
        { token_lifetime: lifetime_seconds },
      );
      key.token_lifetime = lifetime_seconds;
    }
    return key;
  }

  /**
   * Fails if the store's keys need a different pepper, because every client would get “invalid key”. Encrypts the
   * signing keys with the current pepper, so that the previous one can be removed even if no token is signed.
   */
  async requirePepper(): Promise<void> {
    if (this.configured) return;
    const rows = await this.stored().catch((error: unknown) => {
      if (classifyFault(error) === 'unavailable') return [];
      throw error;
    });
    const reseals: Promise<void>[] = [];
    const opened = rows.filter(({ private_key, kid }) =>
      unseal(private_key, kid, this.peppers, (sealed) => reseals.push(this.reseal(kid, sealed))),
    );
    await Promise.all(reseals);
    if (rows.length === 0 || opened.length > 0) return;
    throw new OperatorError(
      'The keys of this store were created with another API_KEY_PEPPER, so all requests would fail with 401. ' +
        'Restore the old one, or add it to API_KEY_PEPPER_PREVIOUS. If it is lost, `gamewharf signing-keys rotate --now` ' +
        'lets the service start, but all API keys must be replaced.',
    );
  }

  current(): Key | undefined {
    if (this.configured) return this.configured[0];
    const keys = [...this.keys.values()];
    // A new store's key begins to sign by the clock of the database, which may be ahead.
    return keys.findLast((key) => key.signs_from <= this.now()) ?? keys[0];
  }

  /**
   * Creates the next key, which is published immediately and signs ten minutes later. With `at_once`, it
   * signs immediately, because the old one is not trusted.
   */
  async rotate({ at_once = false } = {}): Promise<Key> {
    this.rejectConfigured();
    await this.reload();
    const waiting = [...this.keys.values()].find((key) => key.signs_from > this.now());
    if (waiting && !at_once)
      throw new OperatorError(
        `Key ${waiting.kid} is already published and will be used from ${formatSeconds(waiting.signs_from)}. To create a key that signs immediately, use --now.`,
      );
    const key = this.newKey(at_once ? 0 : PUBLISHED_AHEAD_SECONDS);
    const expired = (await this.rows()).filter(({ expired }) => expired).map(({ kid }) => kid);
    await this.database.transaction(async (db) => {
      await db.insert(SigningKey, key);
      if (expired.length > 0) await db.delete(SigningKey, { kid: In(expired) });
    });
    await this.reload();
    return this.keys.get(key.kid)!;
  }

  /** Deletes a key, which invalidates all its tokens. Other replicas follow at their next reload. */
  async revoke(kid: string): Promise<void> {
    this.rejectConfigured();
    await this.reload();
    if (!this.keys.has(kid)) throw new OperatorError(`Signing key ${kid} doesn't exist.`);
    const signing = this.current()?.kid ?? kid;
    await this.database.transaction(async (db) => {
      if (signing === kid) await db.insert(SigningKey, this.newKey(0));
      await db.delete(SigningKey, { kid });
    });
    await this.reload();
  }

  private now(): number {
    return this.clock.now() / 1000;
  }

  private rejectConfigured(): void {
    if (this.configured)
      throw new OperatorError(
        'The signing keys are set in SIGNING_KEYS: add the new key after the old one there, restart all replicas, ' +
          'and then put it first.',
      );
  }

  private newKey(signs_in: number) {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const x = publicKey.export({ format: 'jwk' }).x!;
    const kid = thumbprint(x);
    return {
      kid,
      public_key: Buffer.from(x, 'base64url'),
      private_key: seal(privateKey.export({ format: 'der', type: 'pkcs8' }), kid, this.peppers[0]!),
      token_lifetime: this.settings.JWT_LIFETIME,
      signs_from: () => `now() + make_interval(secs => ${signs_in})`,
    };
  }

  private async ready(): Promise<void> {
    if (this.keys.size === 0) await this.reload();
  }

  /** Applies what other replicas changed. A process that has used no key yet has nothing to update. */
  @Interval('signing keys', RELOAD_INTERVAL_MS)
  async refresh(): Promise<void> {
    if (this.keys.size > 0) await this.reload();
  }

  /** Reloads the keys from the database, after the current reload. Concurrent calls share one reload. */
  reload(interval = 0): Promise<void> {
    if (this.configured) return this.reloads;
    this.next ??= this.reloads.then(async () => {
      await sleep(Math.max(0, this.lastReload + interval - this.clock.monotonic()));
      this.next = undefined;
      this.lastReload = this.clock.monotonic();
      await this.load();
    });
    this.reloads = this.next.catch(() => undefined);
    return this.next;
  }

  private async load(): Promise<void> {
    const rows = await this.stored();
    this.remember(
      rows
        .filter(({ expired }) => !expired)
        .map((row) => ({
          ...(this.keys.get(row.kid) ?? this.opened(row)),
          token_lifetime: row.token_lifetime,
          signs_from: row.signs_from,
          verifies_until: row.verifies_until ?? Infinity,
        })),
    );
  }

  /** Returns all keys. An empty store gets one first key, even if several replicas start together. */
  private async stored(): Promise<Row[]> {
    const rows = await this.rows();
    if (rows.length > 0) return rows;
    await this.database.transaction(async (db) => {
      await this.database.rows(LOCK_SIGNING_KEYS, {}, db);
      if (!(await db.exists(SigningKey))) await db.insert(SigningKey, this.newKey(0));
    });
    return this.rows();
  }

  private rows(): Promise<Row[]> {
    return this.database.rows(SIGNING_KEYS, {});
  }

  private remember(keys: Key[]): void {
    this.keys = new Map(keys.map((key) => [key.kid, key]));
  }

  private opened(row: Row): Pick<Key, 'kid' | 'publicKey' | 'privateKey'> {
    const x = row.public_key.toString('base64url');
    let privateKey: KeyObject | undefined;
    return {
      kid: row.kid,
      publicKey: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
      // The private key is decrypted when it first signs a token, because verification needs no secret.
      privateKey: () => (privateKey ??= this.unsealed(row)),
    };
  }

  private unsealed({ kid, private_key }: Row): KeyObject {
    // During a rotation of the pepper, another process may still encrypt keys with the previous one.
    const text = unseal(private_key, kid, this.peppers, (sealed) => void this.reseal(kid, sealed));
    if (!text)
      throw new OperatorError(
        `Signing key ${kid} is encrypted with a pepper that isn’t configured: add it to API_KEY_PEPPER_PREVIOUS, ` +
          'or create another key with `gamewharf signing-keys rotate --now`.',
      );
    return createPrivateKey({ key: text, format: 'der', type: 'pkcs8' });
  }

  private async reseal(kid: string, private_key: Buffer): Promise<void> {
    try {
      await this.signingKeys.update({ kid }, { private_key });
    } catch (error) {
      this.log.warn(
        `Signing key ${kid} is still encrypted with a previous pepper: ${(error as Error).message}`,
      );
    }
  }
}
