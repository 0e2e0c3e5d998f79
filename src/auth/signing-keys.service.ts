import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { OperatorError } from '../config/operator-error';
import { seal, unseal } from './sealed';

/** Seconds for which others may keep the published keys. */
export const PUBLISHED_FOR = 300;
// A new key is published before it signs, for so long that every copy of the published keys has it by then.
const PUBLISHED_AHEAD = 2 * PUBLISHED_FOR;
const RELOAD_EVERY = 10_000;
// Tokens may name any key: those that we do not know cost one statement in this time, whoever asks.
const RELOAD_APART = 200;
/** Seconds by which clocks may differ. */
export const LEEWAY = 60;
// What its last tokens outlive a key's time by: a replica that signs a little longer, and clocks.
const GRACE = RELOAD_EVERY / 1000 + 2 * LEEWAY;

interface Row {
  kid: string;
  public_key: Buffer;
  private_key: Buffer;
  token_lifetime: number;
  signs_from: number;
  verifies_until: number | null;
}

/** A key, in times of seconds since 1970. */
export interface Key {
  kid: string;
  publicKey: KeyObject;
  privateKey: () => KeyObject;
  token_lifetime: number;
  signs_from: number;
  verifies_until: number;
}

export const SIGNING_KEYS = statement<Row>(
  'signing_keys',
  `SELECT * FROM (
     SELECT kid, public_key, private_key, token_lifetime,
            extract(epoch FROM signs_from)::float8 AS signs_from,
            extract(epoch FROM lead(signs_from) OVER (ORDER BY signs_from, kid))::float8
              + token_lifetime + ${GRACE} AS verifies_until
     FROM signing_keys) k
   WHERE verifies_until IS NULL OR verifies_until > extract(epoch FROM now())
   ORDER BY signs_from, kid`,
);

const OUTLIVE = statement(
  'raise_token_lifetime',
  'UPDATE signing_keys SET token_lifetime = $2 WHERE kid = $1 AND token_lifetime < $2',
);

const RESEAL = statement('reseal_signing_key', 'UPDATE signing_keys SET private_key = $2 WHERE kid = $1');

const INSERT = `
  INSERT INTO signing_keys (kid, public_key, private_key, token_lifetime, signs_from)
  VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))`;

const now = () => Date.now() / 1000;

export const publicJwk = ({ kid, publicKey }: Key): JsonWebKey => {
  const { kty, crv, x } = publicKey.export({ format: 'jwk' });
  return { kty, crv, x, kid, alg: 'EdDSA', use: 'sig' };
};

/** RFC 7638. */
const thumbprintOf = (x: string) =>
  createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url');

/** The keys that JWTs are signed with and verified by: those of the database, or those of the SIGNING_KEYS setting. */
@Injectable()
export class SigningKeysService implements OnModuleDestroy {
  private readonly log = new Logger(SigningKeysService.name);
  private readonly peppers: string[];
  private readonly configured: Key[] | undefined;
  private keys = new Map<string, Key>();
  private loading: Promise<void> | undefined;
  private nextReload: Promise<void> | undefined;
  private lastReload = -Infinity;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly database: Database,
    private readonly settings: Settings,
  ) {
    this.peppers = [settings.API_KEY_PEPPER ?? '', ...settings.API_KEY_PEPPER_PREVIOUS];
    this.configured = settings.SIGNING_KEYS === undefined ? undefined : readPem(settings.SIGNING_KEYS);
    if (this.configured) this.remember(this.configured);
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** All keys that tokens in use may be signed with, now or soon. */
  async published(): Promise<Key[]> {
    await this.ready();
    return [...this.keys.values()].filter((key) => key.verifies_until > now());
  }

  async verifier(kid: string): Promise<KeyObject | undefined> {
    await this.ready();
    if (!this.keys.has(kid) && !this.configured) await this.reloadSoon();
    const key = this.keys.get(kid);
    return key && key.verifies_until > now() ? key.publicKey : undefined;
  }

  /** The key to sign a token of this many seconds with. */
  async signer(lifetime: number): Promise<Pick<Key, 'kid' | 'privateKey'>> {
    await this.ready();
    const key = this.current();
    if (!key) throw new Error('no signing key has begun to sign');
    if (key.token_lifetime < lifetime) {
      await this.database.rows(OUTLIVE, [key.kid, lifetime]);
      key.token_lifetime = lifetime;
    }
    return key;
  }

  /** Which of the keys signs at this moment. */
  current(): Key | undefined {
    if (this.configured) return this.configured[0];
    return [...this.keys.values()].findLast((key) => key.signs_from <= now());
  }

  /** Makes the next key, which is published at once and signs when everybody knows it; `at_once` where the old one is not trusted. */
  async rotate({ at_once = false } = {}): Promise<Key> {
    this.refuseConfigured();
    await this.reload();
    const waiting = [...this.keys.values()].find((key) => key.signs_from > now());
    if (waiting && !at_once)
      throw new OperatorError(
        `Key ${waiting.kid} is published already and signs from ${timeOf(waiting.signs_from)}; --now makes another that signs at once.`,
      );
    const { kid, values } = this.newKey(at_once ? 0 : PUBLISHED_AHEAD);
    await this.database.transaction(async (db) => {
      await db.query(INSERT, values);
      // Those that the statement leaves out have outlived their last token.
      await db.query(`DELETE FROM signing_keys WHERE kid NOT IN (SELECT kid FROM (${SIGNING_KEYS.text}) k)`);
    });
    await this.reload();
    return this.keys.get(kid)!;
  }

  /** Ends a key and every token that it signed: on other replicas when they next reload their keys. */
  async revoke(kid: string): Promise<void> {
    this.refuseConfigured();
    await this.reload();
    if (!this.keys.has(kid)) throw new OperatorError(`There is no signing key ${kid}.`);
    const signing = this.current()?.kid ?? kid;
    await this.database.transaction(async (db) => {
      if (signing === kid) await db.query(INSERT, this.newKey(0).values);
      await db.query('DELETE FROM signing_keys WHERE kid = $1', [kid]);
    });
    await this.reload();
  }

  private refuseConfigured(): void {
    if (this.configured)
      throw new OperatorError(
        'The signing keys are those of SIGNING_KEYS: add the new key after the old one there, restart all replicas, ' +
          'and when others know it put it first.',
      );
  }

  private newKey(signs_in: number) {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const x = publicKey.export({ format: 'jwk' }).x!;
    const kid = thumbprintOf(x);
    const sealed = seal(privateKey.export({ format: 'der', type: 'pkcs8' }), kid, this.peppers[0]!);
    return { kid, values: [kid, Buffer.from(x, 'base64url'), sealed, this.settings.JWT_LIFETIME, signs_in] };
  }

  private async ready(): Promise<void> {
    if (this.keys.size > 0) return;
    this.loading ??= this.reload().finally(() => (this.loading = undefined));
    await this.loading;
    this.timer ??= setInterval(() => void this.reload().catch(() => undefined), RELOAD_EVERY).unref();
  }

  /** One reload at a time and not too often; whoever asks waits for one that begins after the question. */
  private reloadSoon(): Promise<void> {
    this.nextReload ??= (async () => {
      await sleep(Math.max(0, this.lastReload + RELOAD_APART - performance.now()));
      this.nextReload = undefined;
      await this.reload();
    })();
    return this.nextReload;
  }

  private async reload(): Promise<void> {
    if (this.configured) return;
    this.lastReload = performance.now();
    let rows = await this.database.rows(SIGNING_KEYS, []);
    if (rows.length === 0) {
      await this.createFirst();
      rows = await this.database.rows(SIGNING_KEYS, []);
    }
    this.remember(
      rows.map((row) => ({
        ...(this.keys.get(row.kid) ?? this.opened(row)),
        token_lifetime: row.token_lifetime,
        signs_from: row.signs_from,
        verifies_until: row.verifies_until ?? Infinity,
      })),
    );
  }

  private remember(keys: Key[]): void {
    this.keys = new Map(keys.map((key) => [key.kid, key]));
  }

  /** Replicas that start together on an empty store make one key. */
  private createFirst(): Promise<void> {
    return this.database.transaction(async (db) => {
      await db.query('LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE');
      const [{ none }] = (await db.query('SELECT NOT EXISTS (SELECT FROM signing_keys) AS none')) as [
        { none: boolean },
      ];
      if (none) await db.query(INSERT, this.newKey(0).values);
    });
  }

  private opened(row: Row): Pick<Key, 'kid' | 'publicKey' | 'privateKey'> {
    const x = row.public_key.toString('base64url');
    let privateKey: KeyObject | undefined;
    return {
      kid: row.kid,
      publicKey: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
      // Opened by the first token that is signed with it: verifying needs no secret.
      privateKey: () => (privateKey ??= this.unsealed(row)),
    };
  }

  private unsealed({ kid, private_key }: Row): KeyObject {
    for (const [i, pepper] of this.peppers.entries()) {
      const text = unseal(private_key, kid, pepper);
      if (!text) continue;
      if (i > 0) this.reseal(kid, text);
      return createPrivateKey({ key: text, format: 'der', type: 'pkcs8' });
    }
    throw new OperatorError(
      `Signing key ${kid} is sealed under a pepper that is not configured: name it in API_KEY_PEPPER_PREVIOUS, ` +
        'or make another key with `gamewharf signing-keys rotate --now`.',
    );
  }

  private reseal(kid: string, text: Buffer): void {
    this.database
      .rows(RESEAL, [kid, seal(text, kid, this.peppers[0]!)])
      .catch((error: unknown) =>
        this.log.warn(`Signing key ${kid} stays sealed under a previous pepper: ${(error as Error).message}`),
      );
  }
}

export const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z');

function readPem(pem: string): Key[] {
  const blocks = pem.match(/-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/g) ?? [];
  const keys = blocks.map((block): Key => {
    let privateKey: KeyObject;
    try {
      privateKey = createPrivateKey(block);
    } catch {
      throw new OperatorError('SIGNING_KEYS holds a private key that cannot be read.');
    }
    if (privateKey.asymmetricKeyType !== 'ed25519')
      throw new OperatorError(
        'SIGNING_KEYS must hold Ed25519 keys: make one with `openssl genpkey -algorithm ed25519`.',
      );
    const publicKey = createPublicKey(privateKey);
    return {
      kid: thumbprintOf(publicKey.export({ format: 'jwk' }).x!),
      publicKey,
      privateKey: () => privateKey,
      token_lifetime: Infinity,
      signs_from: -Infinity,
      verifies_until: Infinity,
    };
  });
  if (keys.length === 0) throw new OperatorError('SIGNING_KEYS holds no private key in PEM form.');
  return keys;
}
