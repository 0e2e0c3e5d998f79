import type { DemoAccess } from '../dashboard/layout/demo';

/** The output of `npm start`: the address, a key, an account, and requests to paste. */
export function greeting(address: string, demo: DemoAccess | undefined, hasOwnDatabase: boolean): string {
  const lines = ['', `Gamewharf listens on ${address}`];
  if (demo) {
    const request = `curl -H "Authorization: Bearer ${demo.api_key}" "${address}`;
    lines.push(
      `An API key to try, of the demo developer ${demo.username}: ${demo.api_key}`,
      ...(demo.password
        ? [`To sign in at ${address}/login: ${demo.username}, with the password ${demo.password}`]
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
  return [...lines, '', `Ctrl-C stops it${hasOwnDatabase ? ' and its database' : ''}.`, ''].join('\n');
}
