import { Option } from 'commander';
import { Audit } from '../audit/audit';
import { SCOPES } from '../auth/access/scopes';
import { formatSeconds } from '../auth/jwt/signing-key';
import { TokensService } from '../auth/jwt/tokens.service';
import { ApiKeysService } from '../auth/keys/api-keys.service';
import { StoreGames } from '../games/store-games.service';
import { AccountsService } from '../users/accounts.service';
import {
  type Commands,
  GAME_OPTION,
  integerParser,
  type OperatorCommand,
  subcommands,
  userOption,
} from './operator-command';
import { parseScopes } from './scopes.command';

const parseLifetime = integerParser(1, 86_400, 'Use a number of seconds from 1 to 86400.');

interface CreateOptions {
  user: string;
  game: string;
  scope: string[];
  lifetime?: number;
}

export const commands: Commands = { tokens: subcommands({ create: registerCreate, revoke: registerRevoke }) };

function registerCreate(command: OperatorCommand): void {
  command
    .description('Create and print the JWT that a game receives when this user launches it.')
    .needs(userOption('username of the player'))
    .needs(GAME_OPTION)
    .addOption(
      new Option('--scope <SCOPES>', 'scopes of the JWT, separated by spaces')
        .argParser(parseScopes)
        .default(['profile:me'], 'profile:me'),
    )
    .completes('--scope', Object.keys(SCOPES))
    .option('--lifetime <SECONDS>', 'validity in seconds; default: JWT_LIFETIME', parseLifetime)
    .handler(async ({ app }, { user, game, scope, lifetime }: CreateOptions) => {
      const { id: user_id } = await app.get(AccountsService).named(user);
      const { id: game_id } = await app.get(StoreGames).named(game);
      const tokens = app.get(TokensService);
      const order = { user_id, game_id, scopes: scope, api_key_id: null, lifetime_seconds: lifetime };
      const { key, expires_at } = await tokens.issue(order);
      app.get(Audit).record({ event: 'jwt.created', user_id, api_key_id: null, game_id });
      // A server started with a different PORT or PUBLIC_URL rejects the token.
      console.error(`Valid until ${formatSeconds(expires_at)}, issued by ${tokens.issuer}.`);
      console.log(key);
    });
}

function registerRevoke(command: OperatorCommand): void {
  command
    .description('Revoke all JWTs of a user, for every game.')
    .needs(userOption('username of the player'))
    .handler(async ({ app }, { user }: { user: string }) => {
      const { id: user_id } = await app.get(AccountsService).named(user);
      await app.get(ApiKeysService).revokeAllTokens(user_id);
      app.get(Audit).record({ event: 'jwt.revoked', user_id });
      console.log(`All JWTs of ${user} are revoked. Running servers reject them within a second.`);
    });
}
