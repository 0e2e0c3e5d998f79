import { commandName } from '../platform/config/environment';

/** How to continue where there is no game yet. `user`: the account that has none. */
export function nextCommands(user?: string): string {
  const name = user ?? 'me';
  const commands = [
    ...(user === undefined ? [`users create ${name} --developer`] : []),
    `games create --user ${name} --title "My game"`,
    `sell --game ${name}/my-game --to player@example.com`,
  ];
  return ['To add and sell one, run:', ...commands.map((words) => `  ${commandName()} ${words}`)].join('\n');
}
