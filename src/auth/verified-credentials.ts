import { Injectable } from '@nestjs/common';
import { ShortMemory } from '../database/short-memory';
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
  private readonly verified = new ShortMemory<Credential>(REMEMBERED, MOST_REMEMBERED);
  private readonly counters: Record<'remembered' | 'verified' | 'refused', Counter>;
  private asked = new Map<string, Promise<Credential>>();

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

  /** One question at a time, however many wait for its answer. */
  verify(presented: Presented): Promise<Credential> {
    const { asked } = this;
    const question = `${presented.type} ${presented.text}`;
    let answer = asked.get(question);
    if (!answer) {
      const time = performance.now();
      answer = this.lookUp(presented)
        .then((credential) => {
          if (asked === this.asked) this.verified.set(presented.text, credential, time);
          this.counters.verified.value++;
          return credential;
        })
        .catch((error: unknown) => {
          this.counters.refused.value++;
          throw error;
        })
        .finally(() => asked.delete(question));
      asked.set(question, answer);
    }
    return answer;
  }

  /** On a revocation: forgets everything, and learns nothing from questions that were asked before it. */
  forget(): void {
    this.verified.clear();
    this.asked = new Map();
  }

  private async lookUp({ type, text }: Presented): Promise<Credential> {
    if (type === 'jwt') return this.tokens.credentialOf(text);
    const credential = await this.keys.credentialOf(text);
    if (!credential) throw invalidKey();
    return credential;
  }
}

const hasEnded = ({ expires_at }: Credential) =>
  expires_at !== undefined && Date.now() / 1000 >= expires_at + LEEWAY;
