import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { SignJWT } from 'jose';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { SigningKeysService } from './signing-keys.service';
import { ALGORITHM, TokensService } from './tokens.service';

/** A type other than that of credentials, so that neither is accepted in place of the other. */
const PROOF_TYPE = 'ownership+jwt';

/**
 * Signed statements that a user owns a game, for programs that verify them offline. They aren't credentials.
 */
@Injectable()
export class ProofsService {
  constructor(
    private readonly signingKeys: SigningKeysService,
    private readonly tokens: TokensService,
    private readonly settings: Settings,
    private readonly clock: Clock,
  ) {}

  async issue({ user_id, game_id, via }: { user_id: number; game_id: number; via: string }): Promise<string> {
    const { PROOF_SECONDS } = this.settings;
    const { kid, privateKey } = await this.signingKeys.signer(PROOF_SECONDS);
    const iat = Math.floor(this.clock.now() / 1000);
    return new SignJWT({ owns: true, via })
      .setProtectedHeader({ alg: ALGORITHM, typ: PROOF_TYPE, kid })
      .setIssuer(this.tokens.issuer)
      .setAudience(String(game_id))
      .setSubject(String(user_id))
      .setJti(randomUUID())
      .setIssuedAt(iat)
      .setExpirationTime(iat + PROOF_SECONDS)
      .sign(privateKey());
  }
}
