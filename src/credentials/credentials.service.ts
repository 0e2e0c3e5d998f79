import { Injectable } from '@nestjs/common';
import { ApiKeysService } from '../auth/keys/api-keys.service';
import { covers, type Credential } from '../auth/access/credential';
import { insufficientScope, mayNotStartGames } from '../auth/access/errors';
import { CLAIM_SCOPE, SCOPES } from '../auth/access/scopes';
import { TokensService } from '../auth/jwt/tokens.service';
import { Settings } from '../platform/config/settings';
import { OwnershipService } from '../purchases/library/ownership.service';
import { invalidGame } from '../games/errors';
import { badRequest } from '../platform/errors/api-error';

/** A running game can neither download files nor create download keys. */
const NOT_FOR_GAMES = ['game:view:uploads', 'game:edit:keys', 'game:edit:builds'];

@Injectable()
export class CredentialsService {
  private readonly grantable: string[];

  constructor(
    private readonly keys: ApiKeysService,
    private readonly tokens: TokensService,
    private readonly ownership: OwnershipService,
    { MANIFEST_SCOPES }: Settings,
  ) {
    this.grantable = Object.keys(SCOPES).filter(
      (scope) =>
        covers(MANIFEST_SCOPES, scope) &&
        scope !== CLAIM_SCOPE &&
        !NOT_FOR_GAMES.some((one) => covers([scope], one)),
    );
  }

  /**
   * Issues the JWT with which a launched game acts for its player, with the scopes of the game's manifest.
   */
  async subkey(parent: Credential, game_id: number, scope: string) {
    const scopes = [...new Set(scope.split(' ').filter((one) => one !== ''))];
    if (scopes.length === 0 || !scopes.every((one) => this.grantable.includes(one)))
      throw badRequest(`scope must be one or more of ${this.grantable.join(' ')}`);
    const missing = scopes.find((one) => !covers(parent.scopes, one));
    if (missing !== undefined) throw insufficientScope(parent, missing);
    const { user_id, api_key_id } = parent;
    const starter = await this.keys.findGameStarter(api_key_id!);
    if (!starter) throw mayNotStartGames();
    if (!(await this.ownership.mayStart(game_id, user_id))) throw invalidGame();
    return this.tokens.issue({
      user_id,
      game_id,
      scopes,
      api_key_id,
      latest_expiry: starter.expires_at ?? undefined,
    });
  }
}
