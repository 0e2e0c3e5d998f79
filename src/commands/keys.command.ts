import { InvalidArgumentError } from 'commander';
import { Audit } from '../audit/audit';
import { SCOPES } from '../auth/access/scopes';
import { ApiKeysService } from '../auth/keys/api-keys.service';
import { EXPIRY_RULE, parseKeyExpiry } from '../auth/keys/key-expiry';
import { commandName } from '../platform/config/environment';
import { OperatorError } from '../platform/errors/operator-error';
import { AccountsService } from '../users/accounts.service';
import { type Commands, type OperatorCommand, parseId, subcommands, userOption } from './operator-command';
import { type Columns, formatTime, printRows } from './print-table';
import { parseScopes } from './scopes.command';

interface CreateOptions {
  user: string;
  label?: string;
  scope?: string[];
  expires?: { at: string | null };
}

export const commands: Commands = {
  keys: subcommands({ create: registerCreate, list: registerList, revoke: registerRevoke }),
};

function registerCreate(command: OperatorCommand): void {
  command
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
    .handler(async ({ app }, { user, label, scope, expires }: CreateOptions) => {
      const { id: user_id } = await app.get(AccountsService).named(user);
      const more = { label, scopes: scope, expires_at: expires?.at };
      const { id, key } = await app.get(ApiKeysService).create(user_id, more);
      app.get(Audit).record({ event: 'api_key.created', user_id, api_key_id: id });
      const ends = expires?.at ? `, valid until ${expires.at.slice(0, 19)}Z` : '';
      console.error(
        `Created key ${id} for ${user}${ends}. To revoke it, run \`${commandName()} keys revoke ${id}\`.`,
      );
      console.log(key);
    });
}

function registerList(command: OperatorCommand): void {
  command
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
        LABEL: (row) => row.label || null,
      };
      printRows(rows, columns, { json });
    });
}

function registerRevoke(command: OperatorCommand): void {
  command
    .description('Revoke an API key and all JWTs created with it.')
    .argument('<ID>', 'ID of the key, from `keys list`', parseId)
    .handler(async ({ app }, id: number) => {
      if (!(await app.get(ApiKeysService).revoke(id, null)))
        throw new OperatorError(`API key ${id} doesn't exist or is already revoked.`);
      app.get(Audit).record({ event: 'api_key.revoked', api_key_id: id });
      console.log(`Key ${id} is revoked. Running servers reject it within a second.`);
    });
}

// Returns an object because commander takes null for a missing value.
function parseExpiry(text: string): { at: string | null } {
  const at = parseKeyExpiry(text, Date.now());
  if (at === undefined) throw new InvalidArgumentError(EXPIRY_RULE);
  return { at };
}
