import { Injectable } from '@nestjs/common';
import { lasting, ShortMemory } from '../database/short-memory';
import { UnderWay } from '../database/under-way';
import { type Counter, Measurements } from '../http/measurements';
import { ApiKeyLookup } from './api-key-lookup';
import type { Credential } from './credential';
import type { Presented } from './presented';
import { invalidKey } from './refusals';
import { LEEWAY } from './signing-keys.service';
import { TokensService } from './tokens.service';

// A revocation on another replica takes effect within this time.
const REMEMBERED = 1000;
const MOST_REMEMBERED = 20_000;

/** Verifies credentials of both kinds, and remembers for a moment which ones were good. */
@Injectable()
export class VerifiedCredentials {
  // Refused ones are not remembered: however much garbage comes, it displaces nothing.
  private readonly verified = new ShortMemory<Credential>(lasting(REMEMBERED), MOST_REMEMBERED);
  private readonly counters: Record<'remembered' | 'verified' | 'refused', Counter>;
  private readonly underWay = new UnderWay<Credential>();
  private revocations = 0;

  constructor(
    private readonly keys: ApiKeyLookup,
    private readonly tokens: TokensService,
    measurements: Measurements,
  ) {
    const counter = (result: string) =>
      measurements.counter(
        'gamewharf_credential_lookups_total',
        'Credentials, by what it took to know them',
        {
          result,
        },
      );
    this.counters = {
      remembered: counter('remembered'),
      verified: counter('verified'),
      refused: counter('refused'),
    };
  }

  /** The credential if it was found good less than a second ago. */
  remembered({ text, type }: Presented): Credential | undefined {
    const credential = this.verified.get(text, performance.now());
    if (credential?.type !== type || hasEnded(credential)) return undefined;
    this.counters.remembered.value++;
    return credential;
  }

  verify(presented: Presented): Promise<Credential> {
    return this.underWay.ask(`${presented.type} ${presented.text}`, () => this.learn(presented));
  }

  /** On a revocation: forgets everything, and learns nothing from questions that were asked before it. */
  forget(): void {
    this.verified.clear();
    this.underWay.forget();
    this.revocations++;
  }

  private async learn(presented: Presented): Promise<Credential> {
    const { revocations } = this;
    const asked = performance.now();
    try {
      const credential = await this.lookUp(presented);
      if (revocations === this.revocations) this.verified.set(presented.text, credential, asked);
      this.counters.verified.value++;
      return credential;
    } catch (error) {
      this.counters.refused.value++;
      throw error;
    }
  }

  private async lookUp({ type, text }: Presented): Promise<Credential> {
    if (type === 'jwt') return this.tokens.credentialOf(text);
    const credential = await this.keys.credentialOf(text);
    if (!credential) throw invalidKey();
    return credential;
  }
}

const hasEnded = ({ expires_at = Infinity }: Credential) => Date.now() / 1000 >= expires_at + LEEWAY;
