import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { EntityManager } from 'typeorm';
import { Audit } from '../auth/audit';
import type { OperatorCommand } from './operator-command';
import { OperatorError } from '../platform/config/operator-error';
import { ignoringCase } from '../platform/database/ignoring-case';
import { User } from '../auth/accounts/user.entity';
import { hashPassword, PasswordCost } from '../auth/sign-in/password-hash';
import { SessionsService } from '../auth/sign-in/sessions.service';

const MIN_LENGTH = 8;
const MAX_LENGTH = 1000;

export function registerAccountCommands(users: OperatorCommand): void {
  users
    .command('set-password')
    .argument('<name>', 'username')
    .description(
      'Set the password of a user, read from the terminal or standard input, and end all sessions of the user.',
    )
    .handler(async ({ app }, name: string) => {
      const password = await readPassword();
      if ([...password].length < MIN_LENGTH)
        throw new OperatorError(`The password must have at least ${MIN_LENGTH} characters.`);
      if (password.length > MAX_LENGTH)
        throw new OperatorError(`The password must have at most ${MAX_LENGTH} characters.`);
      const { raw } = await app
        .get(EntityManager)
        .createQueryBuilder()
        .update(User)
        .set({ password_hash: await hashPassword(password, app.get(PasswordCost)) })
        .where({ username: ignoringCase(name) })
        .returning('id')
        .execute();
      const [user] = raw as Pick<User, 'id'>[];
      if (!user) throw new OperatorError(`User ${name} doesn't exist.`);
      await app.get(SessionsService).endAllOf(user.id);
      app.get(Audit).record({ event: 'user.password_set', user_id: user.id });
      console.log(`The password of ${name} is set.`);
    });
}

/**
 * In a terminal, prompted twice without echo; from a pipe, the first line. An argument would be visible in the process
 * list.
 */
async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return firstLine();
  const password = await ask('New password: ');
  if ((await ask('Repeat the password: ')) !== password) throw new OperatorError('The two passwords differ.');
  return password;
}

async function firstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) return line;
  throw new OperatorError('Standard input contains no password.');
}

/** Node's line editor without its output: arrow keys edit the line, but nothing shows what is typed. */
async function ask(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true, historySize: 0 });
  try {
    return await new Promise<string>((resolve, reject) => {
      terminal.once('line', resolve);
      // Ctrl-C, or Ctrl-D on an empty line.
      terminal.once('close', () => reject(new OperatorError('Nothing was changed.')));
      // Not earlier, because the terminal itself echoes what is typed before.
      process.stderr.write(question);
    });
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}
