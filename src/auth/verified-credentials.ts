import { Injectable } from '@nestjs/common';
import { ShortMemory } from '../database/short-memory';
import { ApiKeyLookup } from './api-key-lookup';
import { hasFormOfJwt } from './api-key';
import type { Credential } from './credential';
import type { Presented } from './presented';
import { invalidKey, invalidToken } from './refusals';
import { TokensService } from './tokens.service';

// A revocation on another replica takes effect within this time.
const REMEMBERED = 1000;
const MOST_REMEMBERED = 20_000;

const typeOf = (text: string): Credential['type'] => (hasFormOfJwt(text) ? 'jwt' : 'key');

/** Tells the kinds of credential apart, verifies them, and remembers for a moment which ones were good. */
@Injectable()
export class VerifiedCredentials {
  // Refused ones are not remembered: however much garbage comes, it displaces nothing.
  private readonly verified = new ShortMemory<Credential>(REMEMBERED, MOST_REMEMBERED);
  private asked = new Map<string, Promise<Credential>>();

  constructor(
    private readonly keys: ApiKeyLookup,
    private readonly tokens: TokensService,
  ) {}

  /** The credential if it was found good less than a second ago. */
  remembered({ text, type }: Presented): Credential | undefined {
    const credential = this.verified.get(text, performance.now());
    return type === undefined || credential?.type === type ? credential : undefined;
  }

  async verify({ text, type }: Presented): Promise<Credential> {
    if (type !== undefined && type !== typeOf(text)) throw type === 'key' ? invalidKey() : invalidToken();
    return this.ask(text);
  }

  /** On a revocation: forgets everything, and learns nothing from questions that were asked before it. */
  forget(): void {
    this.verified.clear();
    this.asked = new Map();
  }

  /** One question at a time, however many wait for its answer. */
  private ask(text: string): Promise<Credential> {
    const { asked } = this;
    let answer = asked.get(text);
    if (!answer) {
      const time = performance.now();
      answer = this.lookUp(text)
        .then((credential) => {
          if (asked === this.asked) this.verified.set(text, credential, time);
          return credential;
        })
        .finally(() => asked.delete(text));
      asked.set(text, answer);
    }
    return answer;
  }

  private async lookUp(text: string): Promise<Credential> {
    if (typeOf(text) === 'jwt') return this.tokens.credentialOf(text);
    const credential = await this.keys.credentialOf(text);
    if (!credential) throw invalidKey();
    return credential;
  }
}
