import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { Audit } from '../auth/audit';
import type { CommandRunner } from '../config/operator-command';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { OperatorError } from '../config/operator-error';
import { hashPassword } from './sign-in/password-hash';
import { SessionsService } from './sign-in/sessions.service';

const SHORTEST = 8;
const LONGEST = 1000;

const SET_PASSWORD = statement<{ id: number }>(
  'set_password',
  'UPDATE users SET password_hash = $2 WHERE lower(username) = lower($1) RETURNING id',
);

export function registerAccountCommands(program: Command, run: CommandRunner): void {
  program
    .command('users')
    .description('User accounts.')
    .command('set-password')
    .argument('<name>', 'user name')
    .description(
      'Set the password of a user, read from the terminal or from standard input; all sessions of the user end.',
    )
    .action((name: string) =>
      run(async (app) => {
        const password = await readPassword();
        if ([...password].length < SHORTEST)
          throw new OperatorError(`The password must have at least ${SHORTEST} characters.`);
        if (password.length > LONGEST)
          throw new OperatorError(`The password must have at most ${LONGEST} characters.`);
        const user = await app.get(Database).row(SET_PASSWORD, [name, await hashPassword(password)]);
        if (!user) throw new OperatorError(`There is no user ${name}.`);
        await app.get(SessionsService).endAllOf(user.id);
        app.get(Audit).record({ event: 'password set', user_id: user.id });
        console.log(`The password of ${name} is set.`);
      }),
    );
}

/** From a terminal without showing it, twice; from a pipe its first line. Never from an argument, which every user of the machine can see. */
async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return firstLine();
  const password = await ask('New password: ');
  if ((await ask('Again: ')) !== password) throw new OperatorError('The two passwords differ.');
  return password;
}

async function firstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) return line;
  throw new OperatorError('No password came on standard input.');
}

function ask(question: string): Promise<string> {
  process.stderr.write(question);
  const { stdin } = process;
  stdin.setRawMode(true).resume().setEncoding('utf8');
  let text = '';
  return new Promise((resolve, reject) => {
    const read = (typed: string) => {
      for (const character of typed) {
        if (character === '\r' || character === '\n' || character === '\u0004')
          return finish(() => resolve(text));
        if (character === '\u0003') return finish(() => reject(new OperatorError('Nothing was changed.')));
        text =
          character === '\u007f' || character === '\b' ? [...text].slice(0, -1).join('') : text + character;
      }
    };
    const finish = (then: () => void) => {
      stdin.off('data', read).setRawMode(false).pause();
      process.stderr.write('\n');
      then();
    };
    stdin.on('data', read);
  });
}
