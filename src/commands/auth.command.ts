import type { INestApplicationContext } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { type Command, InvalidArgumentError } from 'commander';
import { EntityManager } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { Game } from '../games/game.entity';
import { commandName } from '../platform/config/environment';
import { Clock } from '../platform/config/clock';
import { type CommandRunner, idIn, wholeNumber } from './operator-command';
import { ignoringCase } from '../platform/database/ignoring-case';
import { modernTimestamp } from '../platform/formats/timestamps';
import { OperatorError } from '../platform/config/operator-error';
import { printTable, timeOrDash } from './print-table';
import { ApiKeysService } from '../auth/api-keys.service';
import { Audit } from '../auth/audit';
import { EXPIRY_RULE, expiryOf } from '../auth/key-expiry';
import { registerOperatorTokens } from './operator-tokens.command';
import { routesOf } from '../auth/routes';
import { SCOPES } from '../auth/scopes';
import { type Key, timeOf } from '../auth/signing-key';
import { SigningKeysService } from '../auth/signing-keys.service';
import { TokenRevocations } from '../auth/token-revocations.service';
import { TokensService } from '../auth/tokens.service';

export function registerAuthCommands(program: Command, run: CommandRunner): void {
  registerKeys(program.command('keys').description('API keys'), run);
  const tokens = program.command('tokens').description('JWTs, such as a launched game gets');
  registerTokens(tokens, run);
  registerSigningKeys(program.command('signing-keys').description('The keys that JWTs are signed with'), run);
  registerOperatorTokens(
    program
      .command('operator-tokens')
      .description('Tokens of your own programs, for the routes under /operator/'),
    run,
  );
  registerAudit(program.command('audit').description('Who did what to accounts and keys'), run);
  program
    .command('scopes')
    .description('List all scopes, and which scope each route needs.')
    .action(() =>
      run(
        (app) => {
          printTable(Object.entries(SCOPES));
          console.log();
          printTable(
            routesOf(app.get(ModulesContainer)).map(({ method, path, access }) => [
              method,
              path,
              access ?? 'closed',
            ]),
          );
          return Promise.resolve();
        },
        { database: false },
      ),
    );
}

function registerKeys(keys: Command, run: CommandRunner): void {
  keys
    .command('create')
    .description('Make an API key and print it. It is shown this once.')
    .requiredOption('--user <username>', 'whom it acts for')
    .option('--label <text>', 'what it is for')
    .option('--scope <scopes>', 'limit it to these scopes, with spaces between', scopesIn)
    .option('--expires <when>', 'never, in so many days, or after a date such as 2027-12-31', expiryIn)
    .action((given: { user: string; label?: string; scope?: string[]; expires?: { at: string | null } }) =>
      run(async (app) => {
        const { user, label, scope, expires } = given;
        const user_id = await userNamed(app, user);
        const more = { label, scopes: scope, expires_at: expires?.at };
        const { id, key } = await app.get(ApiKeysService).create(user_id, more);
        app.get(Audit).record({ event: 'api_key.created', user_id, api_key_id: id });
        const ends = expires?.at ? `, good until ${expires.at.slice(0, 19)}Z` : '';
        console.error(`Key ${id} of ${user}${ends}; \`${commandName()} keys revoke ${id}\` ends it.`);
        console.log(key);
      }),
    );
  keys
    .command('list')
    .description("List a user's API keys.")
    .requiredOption('--user <username>')
    .action(({ user }: { user: string }) =>
      run(async (app) => {
        const rows = await app.get(ApiKeysService).keysOf(await userNamed(app, user));
        printTable([
          ['ID', 'KEY', 'SCOPES', 'CREATED', 'LAST USED', 'FROM', 'EXPIRES', 'REVOKED', 'LABEL'],
          ...rows.map((row) => [
            String(row.id),
            `${row.hint}...`,
            row.scopes?.join(' ') ?? 'all',
            timeOrDash(row.created_at),
            timeOrDash(row.last_used_at),
            row.last_used_from ?? '-',
            timeOrDash(row.expires_at),
            timeOrDash(row.revoked_at),
            row.label ?? '',
          ]),
        ]);
      }),
    );
  keys
    .command('revoke')
    .description('End an API key and all JWTs made from it.')
    .argument('<id>', 'as `keys list` shows it', idIn)
    .action((id: number) =>
      run(async (app) => {
        if (!(await app.get(ApiKeysService).revoke(id, null)))
          throw new OperatorError(`There is no live API key ${id}.`);
        app.get(Audit).record({ event: 'api_key.revoked', api_key_id: id });
        console.log(`Key ${id} is revoked: running servers refuse it within a second.`);
      }),
    );
}

function registerTokens(tokens: Command, run: CommandRunner): void {
  tokens
    .command('create')
    .description('Make the JWT that a game would get when this user launches it, and print it.')
    .requiredOption('--user <username>', 'the player')
    .requiredOption('--game <id>', 'the game', idIn)
    .option('--scope <scopes>', 'with spaces between', scopesIn, ['profile:me'])
    .option('--lifetime <seconds>', 'how long it is good; default: JWT_LIFETIME', lifetimeIn)
    .action(
      ({ user, game, scope, lifetime }: { user: string; game: number; scope: string[]; lifetime?: number }) =>
        run(async (app) => {
          const user_id = await userNamed(app, user);
          if (!(await app.get(EntityManager).existsBy(Game, { id: game })))
            throw new OperatorError(`There is no game ${game}.`);
          const tokens = app.get(TokensService);
          const order = { user_id, game_id: game, scopes: scope, api_key_id: null, lifetime };
          const { key, expires_at } = await tokens.issue(order);
          app.get(Audit).record({ event: 'jwt.created', user_id, api_key_id: null, game_id: game });
          // A server that was started with another PORT or PUBLIC_URL than this command has refuses the token.
          console.error(`Good until ${timeOf(expires_at)}, at ${tokens.issuer}.`);
          console.log(key);
        }),
    );
  tokens
    .command('revoke')
    .description('End all JWTs of a user, of every game.')
    .requiredOption('--user <username>', 'the player')
    .action(({ user }: { user: string }) =>
      run(async (app) => {
        const user_id = await userNamed(app, user);
        await app.get(TokenRevocations).revokeAllOf(user_id);
        app.get(Audit).record({ event: 'jwt.revoked', user_id });
        console.log(`All JWTs of ${user} are revoked: running servers refuse them within a second.`);
      }),
    );
}

function registerSigningKeys(signingKeys: Command, run: CommandRunner): void {
  signingKeys
    .command('rotate')
    .description('Publish a new key now, which signs from ten minutes later, when everybody knows it.')
    .option('--now', 'sign with it at once: for an old key that is not trusted any more')
    .action(({ now = false }: { now?: boolean }) =>
      run(async (app) => {
        const key = await app.get(SigningKeysService).rotate({ at_once: now });
        app.get(Audit).record({ event: 'signing_key.created', kid: key.kid });
        console.log(`Key ${key.kid} is published and signs from ${timeOf(key.signs_from)}.`);
      }),
    );
  signingKeys
    .command('list')
    .description('List the published keys.')
    .action(() =>
      run(async (app) => {
        const service = app.get(SigningKeysService);
        const keys = await service.published();
        const current = service.current()?.kid;
        printTable([
          ['KEY', 'STATE', 'SIGNS FROM', 'VERIFIES UNTIL'],
          ...keys.map((key) => [
            key.kid,
            stateOf(key, current, app.get(Clock).now()),
            whenOf(key.signs_from),
            whenOf(key.verifies_until),
          ]),
        ]);
      }),
    );
  signingKeys
    .command('revoke')
    .description('Remove a key that somebody else has, and with it all JWTs that it signed.')
    .argument('<kid>')
    .action((kid: string) =>
      run(async (app) => {
        await app.get(SigningKeysService).revoke(kid);
        app.get(Audit).record({ event: 'signing_key.revoked', kid });
        console.log(`Key ${kid} is gone: running servers refuse its tokens within seconds.`);
      }),
    );
}

function registerAudit(audit: Command, run: CommandRunner): void {
  audit
    .command('list')
    .description('List the newest events.')
    .option('--user <username>', 'only of this user')
    .option('--event <event>', 'only of this kind, such as api_key.created')
    .option('--count <number>', 'how many', eventCountIn, 50)
    .option('--json', 'one JSON object a line')
    .action(
      ({ user, event, count, json }: { user?: string; event?: string; count: number; json?: boolean }) =>
        run(async (app) => {
          const user_id = user === undefined ? undefined : await userNamed(app, user);
          const rows = await app.get(Audit).newest({ user_id, event, count });
          if (json) {
            for (const row of rows) console.log(JSON.stringify({ ...row, at: modernTimestamp(row.at) }));
            return;
          }
          printTable([
            ['ID', 'TIME', 'EVENT', 'USER', 'REQUEST', 'DETAILS'],
            ...rows.map((row) => [
              String(row.id),
              modernTimestamp(row.at),
              row.event,
              String(row.user_id ?? '-'),
              row.request_id ?? '-',
              JSON.stringify(row.details),
            ]),
          ]);
        }),
    );
}

const stateOf = ({ kid, signs_from }: Key, current: string | undefined, now: number) =>
  kid === current ? 'signs' : signs_from > now / 1000 ? 'waits' : 'verifies';

const whenOf = (seconds: number) => (Number.isFinite(seconds) ? timeOf(seconds) : '-');

async function userNamed(app: INestApplicationContext, username: string): Promise<number> {
  const user = await app.get(EntityManager).findOneBy(User, { username: ignoringCase(username) });
  if (!user) throw new OperatorError(`There is no user ${username}.`);
  return user.id;
}

const eventCountIn = wholeNumber(1, 100_000, 'Give a number, from 1 to 100000.');
const lifetimeIn = wholeNumber(1, 86_400, 'Give seconds, from 1 to 86400.');

// An object: commander takes null for a missing value.
function expiryIn(text: string): { at: string | null } {
  const at = expiryOf(text, Date.now());
  if (at === undefined) throw new InvalidArgumentError(EXPIRY_RULE);
  return { at };
}

function scopesIn(text: string): string[] {
  const scopes = text.split(/[\s,]+/).filter((scope) => scope !== '');
  const unknown = scopes.filter((scope) => !(scope in SCOPES));
  if (scopes.length === 0 || unknown.length > 0)
    throw new InvalidArgumentError('`gamewharf scopes` lists all scopes.');
  return scopes;
}
