import type { DemoAccess } from '../dashboard/layout/demo';
import { nextCommands } from './next-commands';

interface Started {
  demo: DemoAccess | undefined;
  hasOwnDatabase: boolean;
  isEmpty: boolean;
  setupCode: string | undefined;
}

/** The output of `npm start`: the URL, and what to try with the demo store or an empty one. */
export function greeting(address: string, { demo, hasOwnDatabase, isEmpty, setupCode }: Started): string {
  const lines = ['', `Gamewharf listens on ${address}`];
  if (demo) {
    const request = `curl -H "Authorization: Bearer ${demo.api_key}" "${address}`;
    lines.push(
      `API key of the demo developer ${demo.username}: ${demo.api_key}`,
      ...(demo.password
        ? [`To sign in at ${address}/login, use ${demo.username} and the password ${demo.password}`]
        : []),
      '',
      `  ${request}/profile"`,
      `  ${request}/games/${demo.game_id}/purchases?email=${demo.buyer_email}"`,
      `  curl "${address}/wharf/latest?target=${demo.username}/${demo.slug}&channel_name=${demo.channel_name}"`,
      ...(demo.upload_id === null
        ? []
        : [`  ${request}/uploads/${demo.upload_id}/download" --location --output game.zip`]),
    );
  }
  if (setupCode !== undefined)
    lines.push(`To set up the store in a browser, open ${address}/setup and enter the code ${setupCode}`, '');
  if (isEmpty) lines.push(`The store has no games yet. ${nextCommands()}`);
  return [
    ...lines,
    '',
    `Press Ctrl-C to stop the service${hasOwnDatabase ? ' and its database' : ''}.`,
    '',
  ].join('\n');
}
