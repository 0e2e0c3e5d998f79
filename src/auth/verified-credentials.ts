import { Injectable } from '@nestjs/common';
import { ShortMemory } from '../caching/short-memory';
import { UnderWay } from '../caching/under-way';
import { type Counter, Measurements } from '../http/measurements';
import { ApiKeyLookup, type KnownKey } from './api-key-lookup';
import { type Credential, limitedAs, type LimitedAs } from './credential';
import { KeyChanges } from './key-changes';
import type { Presented } from './presented';
import { invalidKey } from './refusals';
import { LEEWAY } from './signing-keys.service';
import { TokensService } from './tokens.service';

// JWTs are few and end soon. A revocation on another replica takes effect within this time, in milliseconds.
const TOKENS_BELIEVED = 1000;
// For longer it is only remembered whose they are.
const TOKENS_KNOWN = 10 * 60_000;
const MOST_TOKENS = 20_000;
// For as long as they are known not to have changed: docs/decisions/remembered-credentials.md.
const MOST_KEYS = 100_000;

interface KnownToken {
  credential: Credential;
  limited_as: LimitedAs;
}

/** Verifies credentials of both kinds, and remembers which ones were good. */
@Injectable()
export class VerifiedCredentials {
  // Refused ones are not remembered: however much garbage comes, it displaces nothing.
  private readonly keys: ShortMemory<KnownKey>;
  private readonly tokens = new ShortMemory<KnownToken>(
    { freshAfter: (now) => now - TOKENS_BELIEVED, staleUntil: (now) => now - TOKENS_KNOWN },
    MOST_TOKENS,
  );
  private readonly counters: Record<'remembered' | 'verified' | 'refused', Counter>;
  private readonly underWay = new UnderWay<Credential>();

  constructor(
    private readonly lookup: ApiKeyLookup,
    private readonly issuer: TokensService,
    private readonly changes: KeyChanges,
    measurements: Measurements,
  ) {
    this.keys = new ShortMemory(changes, MOST_KEYS);
    this.counters = measurements.results(
      'gamewharf_credential_lookups_total',
      'Credentials, by what it took to know them',
      'remembered',
      'verified',
      'refused',
    );
  }

  /** The credential if it was found good and is still known to be. */
  remembered({ text, type }: Presented): Credential | undefined {
    const now = performance.now();
    const credential = type === 'key' ? this.rememberedKey(text, now) : this.rememberedToken(text, now);
    if (credential) this.counters.remembered.value++;
    return credential;
  }

  /** Only chooses the limits, for a credential that was good at some time; does not authenticate. */
  limitedAs({ text, type }: Presented): LimitedAs | undefined {
    return (type === 'key' ? this.keys : this.tokens).last(text)?.limited_as;
  }

  verify(presented: Presented): Promise<Credential> {
    return this.underWay.ask(`${presented.type} ${presented.text}`, () => this.learn(presented));
  }

  /** After a change of one key or of any: distrusts what is cached, and the answers to lookups that were sent before. */
  forget(api_key_id?: number): void {
    if (api_key_id === undefined) this.keys.forget();
    else this.changes.note(api_key_id);
    this.tokens.forget();
    this.underWay.forget();
  }

  private rememberedKey(text: string, now: number): Credential | undefined {
    const key = this.keys.get(text, now);
    if (!key || now >= key.ends || this.changes.changedSince(key.credential.api_key_id, key.learned))
      return undefined;
    this.lookup.used(key, now);
    return key.credential;
  }

  private rememberedToken(text: string, now: number): Credential | undefined {
    const credential = this.tokens.get(text, now)?.credential;
    return credential && !hasEnded(credential) ? credential : undefined;
  }

  private async learn({ type, text }: Presented): Promise<Credential> {
    try {
      const credential = type === 'key' ? await this.learnKey(text) : await this.learnToken(text);
      this.counters.verified.value++;
      return credential;
    } catch (error) {
      this.counters.refused.value++;
      throw error;
    }
  }

  private async learnKey(text: string): Promise<Credential> {
    const key = await this.lookup.find(text);
    if (!key) throw invalidKey();
    this.keys.set(text, key, key.learned);
    return key.credential;
  }

  private async learnToken(text: string): Promise<Credential> {
    const asked = performance.now();
    const credential = await this.issuer.credentialOf(text);
    this.tokens.set(text, { credential, limited_as: limitedAs(credential) }, asked);
    return credential;
  }
}

const hasEnded = ({ expires_at = Infinity }: Credential) => Date.now() / 1000 >= expires_at + LEEWAY;
