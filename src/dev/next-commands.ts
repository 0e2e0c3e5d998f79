import { commandName } from '../platform/config/environment';

/** The next commands for a store, or for the account `user`, without games. */
export function nextCommands(user?: string): string {
  const name = user ?? 'me';
  const commands = [
    ...(user === undefined ? [`users create ${name} --developer`] : []),
    `games create --user ${name} --title "My game" --price 4.99`,
    `sell --game ${name}/my-game --to player@example.com`,
  ];
  return ['To add and sell one, run:', ...commands.map((words) => `  ${commandName()} ${words}`)].join('\n');
}
