import { Audit, AUDIT_EVENTS } from '../audit/audit';
import { modernTimestamp } from '../platform/formats/timestamps';
import { AccountsService } from '../users/accounts.service';
import { type Commands, integerParser, type OperatorCommand, subcommands } from './operator-command';
import { formatTime, printRows } from './print-table';

interface ListOptions {
  user?: string;
  event?: string;
  count: number;
  json?: boolean;
}

const parseCount = integerParser(1, 100_000, 'Use a number from 1 to 100000.');

export const commands: Commands = { audit: subcommands({ list: registerList }) };

function registerList(command: OperatorCommand): void {
  command
    .description('List the newest audit events.')
    .option('--user <USERNAME>', 'only events of this user')
    .option('--event <EVENT>', 'only events of this type, such as api_key.created')
    .completes('--event', Object.keys(AUDIT_EVENTS))
    .option('--count <NUMBER>', 'number of events', parseCount, 50)
    .json()
    .handler(async ({ app }, { user, event, count, json }: ListOptions) => {
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
    });
}
