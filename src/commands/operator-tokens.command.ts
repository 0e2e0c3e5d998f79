import { InvalidArgumentError } from 'commander';
import { commandName } from '../platform/config/environment';
import { type Commands, type OperatorCommand, subcommands } from './operator-command';
import { OperatorError } from '../platform/errors/operator-error';
import { type Columns, printRows, formatTime } from './print-table';
import { Audit } from '../audit/audit';
import {
  ALL_PERMISSIONS,
  OPERATOR_PERMISSIONS,
  type OperatorPermission,
} from '../operator/tokens/operator-may';
import { OperatorTokensService } from '../operator/tokens/operator-tokens.service';

// Lowercase only: OPERATOR_TOKEN is the name of the setting's token in audit events.
const NAME = /^[a-z0-9][a-z0-9._-]{0,49}$/;

export const commands: Commands = {
  'operator-tokens': subcommands({ create: registerCreate, list: registerList, revoke: registerRevoke }),
};

function registerCreate(command: OperatorCommand): void {
  command
    .description('Create an operator token and print it. The token is shown only once.')
    .example('operator-tokens create checkout --permissions purchases')
    .argument(
      '<NAME>',
      'name of the program that uses it, such as checkout; appears in audit events',
      parseName,
    )
    .needs(
      {
        flags: '--permissions <PERMISSIONS>',
        description: `permissions, separated by commas: ${ALL_PERMISSIONS.join(', ')}`,
        noun: 'list of permissions',
        question: 'Permissions, separated by commas:',
        example: ALL_PERMISSIONS[0]!,
      },
      parsePermissions,
    )
    .completes('--permissions', ALL_PERMISSIONS)
    .addHelpText('after', () => {
      const lines = Object.entries(OPERATOR_PERMISSIONS).map(
        ([permission, text]) => `  ${permission.padEnd(11)}${text}`,
      );
      return ['', 'Permissions:', ...lines].join('\n');
    })
    .handler(async ({ app }, name: string, { permissions }: { permissions: OperatorPermission[] }) => {
      const token = await app.get(OperatorTokensService).create(name, permissions);
      app.get(Audit).record({ event: 'operator_token.created', operator: name });
      console.error(
        `Created token ${name}, with the permissions: ${permissions.join(', ')}. To revoke it, run \`${commandName()} operator-tokens revoke ${name}\`.`,
      );
      console.log(token);
    });
}

function registerList(command: OperatorCommand): void {
  command
    .description('List all operator tokens, including revoked ones.')
    .json()
    .handler(async ({ app }, { json }: { json?: boolean }) => {
      const rows = await app.get(OperatorTokensService).list();
      const columns: Columns<(typeof rows)[number]> = {
        NAME: (row) => row.name,
        TOKEN: (row) => `${row.hint}...`,
        PERMISSIONS: (row) => row.permissions,
        CREATED: (row) => formatTime(row.created_at),
        'LAST USED': (row) => formatTime(row.last_used_at),
        REVOKED: (row) => formatTime(row.revoked_at),
      };
      printRows(rows, columns, { json });
    });
}

function registerRevoke(command: OperatorCommand): void {
  command
    .description('Revoke an operator token.')
    .argument('<NAME>', 'name of the token, from `operator-tokens list`')
    .handler(async ({ app }, name: string) => {
      if (!(await app.get(OperatorTokensService).revoke(name)))
        throw new OperatorError(`Token ${name} doesn't exist or is already revoked.`);
      app.get(Audit).record({ event: 'operator_token.revoked', operator: name });
      console.log(`Token ${name} is revoked. Running servers reject it within a second.`);
    });
}

function parseName(text: string): string {
  if (!NAME.test(text))
    throw new InvalidArgumentError(
      'Use up to 50 lowercase letters, digits, -, . and _, starting with a letter or digit.',
    );
  return text;
}

function parsePermissions(text: string): OperatorPermission[] {
  const names = text.split(/[\s,]+/).filter((permission) => permission !== '');
  const permissions = ALL_PERMISSIONS.filter((permission) => names.includes(permission));
  if (names.length === 0 || names.some((permission) => !(permission in OPERATOR_PERMISSIONS)))
    throw new InvalidArgumentError(`The permissions are ${ALL_PERMISSIONS.join(', ')}.`);
  return permissions;
}
