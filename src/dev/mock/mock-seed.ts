/** The account that every mock has: a developer. A seed may replace it; its key stays. */
export const MOCK_USER_ID = 1;
export const MOCK_API_KEY = 'gw_test_key';

const USER = { type: 'user', id: MOCK_USER_ID, username: 'test-dev', developer: true };
const KEY = { type: 'api_key', key: MOCK_API_KEY, user_id: MOCK_USER_ID };

/** The records of a seed, after those of the account: line numbers of problems are those of the seed. */
export function withMockUser(seed: string): Buffer[] {
  const hasUser = seed.split('\n').some((line) => isUser(line));
  // These lines come after the seed, so that its own line numbers stay.
  const added = [...(hasUser ? [] : [USER]), KEY].map((record) => JSON.stringify(record));
  return [
    Buffer.from(seed === '' || seed.endsWith('\n') ? seed : `${seed}\n`),
    Buffer.from(added.join('\n')),
  ];
}

function isUser(line: string): boolean {
  if (!line.includes('"user"')) return false;
  try {
    const { type, id } = JSON.parse(line) as { type?: unknown; id?: unknown };
    return type === 'user' && id === MOCK_USER_ID;
  } catch {
    return false;
  }
}
