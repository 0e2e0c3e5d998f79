import { type Command, InvalidArgumentError } from 'commander';
import { commandName } from '../platform/config/environment';
import type { CommandRunner } from './operator-command';
import { OperatorError } from '../platform/config/operator-error';
import { printTable, timeOrDash } from './print-table';
import { Audit } from '../auth/audit';
import { ALL_RIGHTS, OPERATOR_RIGHTS, type OperatorRight } from '../operator/tokens/operator-rights';
import { OperatorTokensService } from '../operator/tokens/operator-tokens.service';

// Small letters only: OPERATOR_TOKEN is the name of the setting's token in audit events.
const NAME = /^[a-z0-9][a-z0-9._-]{0,49}$/;

export function registerOperatorTokens(tokens: Command, run: CommandRunner): void {
  tokens
    .command('create')
    .description('Make a token and print it. It is shown this once.')
    .argument('<name>', 'whose it is, such as checkout: audit events have it', nameIn)
    .requiredOption('--may <rights>', `what it may do: ${ALL_RIGHTS.join(', ')}`, rightsIn)
    .addHelpText('after', () => {
      const lines = Object.entries(OPERATOR_RIGHTS).map(([right, text]) => `  ${right.padEnd(11)}${text}`);
      return ['', 'Rights:', ...lines].join('\n');
    })
    .action((name: string, { may }: { may: OperatorRight[] }) =>
      run(async (app) => {
        const token = await app.get(OperatorTokensService).create(name, may);
        app.get(Audit).record({ event: 'operator_token.created', operator: name });
        console.error(
          `Token ${name} may ${may.join(', ')}; \`${commandName()} operator-tokens revoke ${name}\` ends it.`,
        );
        console.log(token);
      }),
    );
  tokens
    .command('list')
    .description('List all tokens, revoked ones included.')
    .action(() =>
      run(async (app) => {
        printTable([
          ['NAME', 'TOKEN', 'MAY', 'CREATED', 'LAST USED', 'REVOKED'],
          ...(await app.get(OperatorTokensService).list()).map((row) => [
            row.name,
            `${row.hint}...`,
            row.rights.join(' '),
            timeOrDash(row.created_at),
            timeOrDash(row.last_used_at),
            timeOrDash(row.revoked_at),
          ]),
        ]);
      }),
    );
  tokens
    .command('revoke')
    .description('End a token.')
    .argument('<name>', 'as `operator-tokens list` shows it')
    .action((name: string) =>
      run(async (app) => {
        if (!(await app.get(OperatorTokensService).revoke(name)))
          throw new OperatorError(`There is no live token ${name}.`);
        app.get(Audit).record({ event: 'operator_token.revoked', operator: name });
        console.log(`Token ${name} is revoked: running servers refuse it within a second.`);
      }),
    );
}

function nameIn(text: string): string {
  if (!NAME.test(text))
    throw new InvalidArgumentError('Give up to 50 small letters, digits, and - . _ after the first.');
  return text;
}

function rightsIn(text: string): OperatorRight[] {
  const given = text.split(/[\s,]+/).filter((right) => right !== '');
  const rights = ALL_RIGHTS.filter((right) => given.includes(right));
  if (given.length === 0 || given.some((right) => !(right in OPERATOR_RIGHTS)))
    throw new InvalidArgumentError(`The rights are ${ALL_RIGHTS.join(', ')}.`);
  return rights;
}
