/** What a developer reads after `npm start`: where it is, a key, and three requests to paste. */
export function greeting(address: string, key: string | undefined): string {
  const lines = ['', `Gamewharf listens on ${address}`];
  if (key)
    lines.push(
      `An API key to try: ${key}`,
      '',
      `  curl -H "Authorization: Bearer ${key}" ${address}/profile`,
      `  curl -H "Authorization: Bearer ${key}" ${address}/profile/games`,
      `  curl "${address}/wharf/latest?target=DEMO_TARGET&channel_name=windows"`,
    );
  return [...lines, ''].join('\n');
}
