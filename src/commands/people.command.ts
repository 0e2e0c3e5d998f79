import { once } from 'node:events';
import type { INestApplicationContext } from '@nestjs/common';
import { OperatorEvents } from '../operator/tokens/operator-events';
import type { OperatorCommand } from './operator-command';
import { OperatorError, UsageError } from '../platform/errors/operator-error';
import { InvalidValue } from '../platform/input/input-values';
import { readEmailAddress } from '../platform/input/readers';
import { toStandardOutput } from './input-output';
import { confirm } from './terminal';
import { printTable } from './print-table';
import { ErasureService, withoutZeros } from '../operator/people/erasure.service';
import { ExportService } from '../operator/people/export.service';
import { People, type Person } from '../operator/people/person';

interface Options {
  email?: string;
  yes?: boolean;
}

export function registerExport(command: OperatorCommand): void {
  aboutPerson(command)
    .description('Write all data stored about a person to standard output, as newline-delimited JSON.')
    .handler(async ({ app }, name: string | undefined, options: Options) => {
      const person = await findPerson(app, name, options);
      const counts: Record<string, number> = {};
      await toStandardOutput(async () => {
        for await (const lines of app.get(ExportService).lines(person, counts))
          if (!process.stdout.write(lines)) await once(process.stdout, 'drain');
      });
      app.get(OperatorEvents).record('user.exported', {}, { counts, user_id: person.user_id ?? undefined });
    });
}

export function registerErase(command: OperatorCommand): void {
  aboutPerson(command)
    .description(
      'Erase the personal data of a user or buyer. Purchases keep amounts, dates and games for accounting.',
    )
    .option('--yes', 'skip the confirmation')
    .handler(async ({ app, signal }, name: string | undefined, options: Options) => {
      const person = await findPerson(app, name, options);
      if (!options.yes) await confirmErasure(person, signal);
      const erased = await app.get(ErasureService).erase(person);
      const counts = withoutZeros(erased);
      app.get(OperatorEvents).record('user.erased', {}, { counts, user_id: person.user_id ?? undefined });
      const rows = Object.entries(counts);
      if (rows.length === 0) console.log('There is no data to erase.');
      else printTable([['ERASED', 'ROWS'], ...rows.map(([table, count]) => [table, String(count)])]);
    });
}

const aboutPerson = (command: OperatorCommand) =>
  command
    .argument('[NAME]', 'username')
    .option('--email <ADDRESS>', 'email address instead of a username, with or without an account');

async function findPerson(
  app: INestApplicationContext,
  name: string | undefined,
  { email }: Options,
): Promise<Person> {
  if ((name === undefined) === (email === undefined))
    throw new UsageError('Specify either a username or --email ADDRESS.');
  if (email !== undefined) {
    const address = readEmailAddress(email);
    if (address instanceof InvalidValue) throw new UsageError(`${email} isn't a valid email address.`);
    return app.get(People).findByEmail(address);
  }
  const person = await app.get(People).findByUsername(name!);
  if (!person) throw new OperatorError(`User ${name!} doesn't exist.`);
  return person;
}

function confirmErasure({ user_id, username, addresses }: Person, signal: AbortSignal): Promise<void> {
  const who = username === null ? addresses.join(', ') : `${username} (user ${user_id})`;
  const expected = username ?? addresses[0] ?? '';
  return confirm(
    {
      question: `This permanently erases ${who}. Type ${expected} to continue:`,
      expected,
      undone: 'Nothing was erased.',
      without: `Use --yes to erase ${who} without confirmation.`,
    },
    signal,
  );
}
