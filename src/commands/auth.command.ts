/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the routes */
import { InvalidArgumentError, Option } from 'commander';
import { StoreGames } from '../games/store-games.service';
import { commandName } from '../platform/config/environment';
import { Clock } from '../platform/config/clock';
import {
  type Commands,
  GAME,
  parseId,
  integerParser,
  type OperatorCommand,
  userOption,
} from './operator-command';
import { modernTimestamp } from '../platform/formats/timestamps';
import { OperatorError } from '../platform/errors/operator-error';
import { type Columns, printRows, printTable, formatTime } from './print-table';
import { ApiKeysService } from '../auth/keys/api-keys.service';
import { Audit, EVENTS } from '../audit/audit';
import { EXPIRY_RULE, parseKeyExpiry } from '../auth/keys/key-expiry';
import { SCOPES } from '../auth/access/scopes';
import { type Key, formatSeconds } from '../auth/jwt/signing-key';
import { SigningKeysService } from '../auth/jwt/signing-keys.service';
import { TokensService } from '../auth/jwt/tokens.service';
import { AccountsService } from '../users/accounts.service';

export const commands: Commands = {
  keys: registerKeys,
  tokens: registerTokens,
  'signing-keys': registerSigningKeys,
  audit: registerAudit,
  scopes: registerScopes,
};

function registerKeys(keys: OperatorCommand): void {
  keys
    .command('create')
    .description('Create an API key and print it. The key is shown only once.')
    .example('keys create --user ash-beetle --scope "profile:me game:view" --expires 90')
    .needs(userOption('username of the key owner'))
    .option('--label <TEXT>', 'label that the owner sees')
    .option('--scope <SCOPES>', 'scopes of the key, separated by spaces; default: all', parseScopes)
    .completes('--scope', Object.keys(SCOPES))
    .option(
      '--expires <WHEN>',
      'expiry: never, a number of days, or the last day, such as 2027-12-31',
      parseExpiry,
    )
    .handler(
      async (
        { app },
        given: { user: string; label?: string; scope?: string[]; expires?: { at: string | null } },
      ) => {
        const { user, label, scope, expires } = given;
        const { id: user_id } = await app.get(AccountsService).named(user);
        const more = { label, scopes: scope, expires_at: expires?.at };
        const { id, key } = await app.get(ApiKeysService).create(user_id, more);
        app.get(Audit).record({ event: 'api_key.created', user_id, api_key_id: id });
        const ends = expires?.at ? `, valid until ${expires.at.slice(0, 19)}Z` : '';
        console.error(
          `Created key ${id} for ${user}${ends}. To revoke it, run \`${commandName()} keys revoke ${id}\`.`,
        );
        console.log(key);
      },
    );
  keys
    .command('list')
    .description("List a user's API keys.")
    .needs(userOption('username of the key owner'))
    .json()
    .handler(async ({ app }, { user, json }: { user: string; json?: boolean }) => {
      const rows = await app.get(ApiKeysService).listKeys((await app.get(AccountsService).named(user)).id);
      const columns: Columns<(typeof rows)[number]> = {
        ID: (row) => row.id,
        KEY: (row) => `${row.hint}...`,
        SCOPES: (row) => row.scopes ?? ['all'],
        CREATED: (row) => formatTime(row.created_at),
        'LAST USED': (row) => formatTime(row.last_used_at),
        FROM: (row) => row.last_used_from,
        EXPIRES: (row) => formatTime(row.expires_at),
        REVOKED: (row) => formatTime(row.revoked_at),
        LABEL: (row) => row.label ?? '',
      };
      printRows(rows, columns, { json });
    });
  keys
    .command('revoke')
    .description('Revoke an API key and all JWTs created with it.')
    .argument('<ID>', 'ID of the key, from `keys list`', parseId)
    .handler(async ({ app }, id: number) => {
      if (!(await app.get(ApiKeysService).revoke(id, null)))
        throw new OperatorError(`API key ${id} doesn't exist or is already revoked.`);
      app.get(Audit).record({ event: 'api_key.revoked', api_key_id: id });
      console.log(`Key ${id} is revoked. Running servers reject it within a second.`);
    });
}

function registerTokens(tokens: OperatorCommand): void {
  tokens
    .command('create')
    .description('Create and print the JWT that a game receives when this user launches it.')
    .needs(userOption('username of the player'))
    .needs(GAME)
    .addOption(
      new Option('--scope <SCOPES>', 'scopes of the JWT, separated by spaces')
        .argParser(parseScopes)
        .default(['profile:me'], 'profile:me'),
    )
    .completes('--scope', Object.keys(SCOPES))
    .option('--lifetime <SECONDS>', 'validity in seconds; default: JWT_LIFETIME', parseLifetime)
    .handler(
      async (
        { app },
        { user, game, scope, lifetime }: { user: string; game: string; scope: string[]; lifetime?: number },
      ) => {
        const { id: user_id } = await app.get(AccountsService).named(user);
        const { id: game_id } = await app.get(StoreGames).named(game);
        const tokens = app.get(TokensService);
        const order = { user_id, game_id, scopes: scope, api_key_id: null, lifetime };
        const { key, expires_at } = await tokens.issue(order);
        app.get(Audit).record({ event: 'jwt.created', user_id, api_key_id: null, game_id });
        // A server started with a different PORT or PUBLIC_URL rejects the token.
        console.error(`Valid until ${formatSeconds(expires_at)}, issued by ${tokens.issuer}.`);
        console.log(key);
      },
    );
  tokens
    .command('revoke')
    .description('Revoke all JWTs of a user, for every game.')
    .needs(userOption('username of the player'))
    .handler(async ({ app }, { user }: { user: string }) => {
      const { id: user_id } = await app.get(AccountsService).named(user);
      await app.get(ApiKeysService).revokeAllTokens(user_id);
      app.get(Audit).record({ event: 'jwt.revoked', user_id });
      console.log(`All JWTs of ${user} are revoked. Running servers reject them within a second.`);
    });
}

function registerSigningKeys(signingKeys: OperatorCommand): void {
  signingKeys
    .command('rotate')
    .description(
      'Publish a new signing key. It takes effect after ten minutes, once clients have fetched it.',
    )
    .option('--now', 'sign with the new key immediately, for example if the old key was compromised')
    .handler(async ({ app }, { now = false }: { now?: boolean }) => {
      const key = await app.get(SigningKeysService).rotate({ at_once: now });
      app.get(Audit).record({ event: 'signing_key.created', kid: key.kid });
      console.log(`Key ${key.kid} is published and will be used from ${formatSeconds(key.signs_from)}.`);
    });
  signingKeys
    .command('list')
    .description('List the published signing keys.')
    .json()
    .handler(async ({ app }, { json }: { json?: boolean }) => {
      const service = app.get(SigningKeysService);
      const keys = await service.published();
      const current = service.current()?.kid;
      const columns: Columns<Key> = {
        KEY: (key) => key.kid,
        STATE: (key) => describeState(key, current, app.get(Clock).now()),
        'SIGNS FROM': (key) => formatWhen(key.signs_from),
        'VERIFIES UNTIL': (key) => formatWhen(key.verifies_until),
      };
      printRows(keys, columns, { json });
    });
  signingKeys
    .command('revoke')
    .description('Revoke a compromised signing key and all JWTs that it signed.')
    .argument('<KID>', 'ID of the key, from `signing-keys list`')
    .handler(async ({ app }, kid: string) => {
      await app.get(SigningKeysService).revoke(kid);
      app.get(Audit).record({ event: 'signing_key.revoked', kid });
      console.log(`Key ${kid} is revoked. Running servers reject its tokens within seconds.`);
    });
}

function registerAudit(audit: OperatorCommand): void {
  audit
    .command('list')
    .description('List the newest audit events.')
    .option('--user <USERNAME>', 'only events of this user')
    .option('--event <EVENT>', 'only events of this type, such as api_key.created')
    .completes('--event', Object.keys(EVENTS))
    .option('--count <NUMBER>', 'number of events', parseEventCount, 50)
    .json()
    .handler(
      async (
        { app },
        { user, event, count, json }: { user?: string; event?: string; count: number; json?: boolean },
      ) => {
        const user_id = user === undefined ? undefined : (await app.get(AccountsService).named(user)).id;
        const rows = await app.get(Audit).newest({ user_id, event, count });
        if (json) {
          for (const row of rows) console.log(JSON.stringify({ ...row, at: modernTimestamp(row.at) }));
          return;
        }
        if (rows.length === 0 && event !== undefined) {
          console.log(`No events of the type ${event}.`);
          return;
        }
        printRows(rows, {
          ID: (row) => row.id,
          TIME: (row) => formatTime(row.at),
          EVENT: (row) => row.event,
          USER: (row) => row.user_id,
          REQUEST: (row) => row.request_id,
          DETAILS: (row) => JSON.stringify(row.details),
        });
      },
    );
}

function registerScopes(scopes: OperatorCommand): void {
  scopes.json().handler(
    ({ app }, { json = false }: { json?: boolean }) => {
      const { ModulesContainer } = require('@nestjs/core') as typeof import('@nestjs/core');
      const { listRoutes } = require('../auth/access/routes') as typeof import('../auth/access/routes');
      const routes = listRoutes(app.get(ModulesContainer)).map(({ method, path, access = 'closed' }) => ({
        method,
        path,
        access: [access].flat(),
      }));
      if (json) {
        for (const [scope, description] of Object.entries(SCOPES))
          console.log(JSON.stringify({ scope, description }));
        for (const route of routes) console.log(JSON.stringify(route));
        return Promise.resolve();
      }
      printTable(Object.entries(SCOPES));
      console.log();
      printTable(routes.map(({ method, path, access }) => [method, path, access.join(' or ')]));
      return Promise.resolve();
    },
    { database: false },
  );
}

const describeState = ({ kid, signs_from }: Key, current: string | undefined, now: number) =>
  kid === current ? 'active' : signs_from > now / 1000 ? 'upcoming' : 'verify-only';

const formatWhen = (seconds: number) => (Number.isFinite(seconds) ? formatSeconds(seconds) : null);

const parseEventCount = integerParser(1, 100_000, 'Use a number from 1 to 100000.');
const parseLifetime = integerParser(1, 86_400, 'Use a number of seconds from 1 to 86400.');

// Returns an object because commander takes null for a missing value.
function parseExpiry(text: string): { at: string | null } {
  const at = parseKeyExpiry(text, Date.now());
  if (at === undefined) throw new InvalidArgumentError(EXPIRY_RULE);
  return { at };
}

function parseScopes(text: string): string[] {
  const scopes = text.split(/[\s,]+/).filter((scope) => scope !== '');
  const unknown = scopes.filter((scope) => !(scope in SCOPES));
  if (scopes.length === 0 || unknown.length > 0)
    throw new InvalidArgumentError('Unknown scope. `gamewharf scopes` lists all scopes.');
  return scopes;
}
