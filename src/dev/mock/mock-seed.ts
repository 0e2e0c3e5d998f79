/** The account that every mock has: a developer. A seed may replace it; its key stays. */
const MOCK_USER_ID = 1;
export const MOCK_API_KEY = 'gw_test_key';

const MOCK_USER = { type: 'user', id: MOCK_USER_ID, username: 'test-dev', developer: true };
const MOCK_KEY = { type: 'api_key', key: MOCK_API_KEY, user_id: MOCK_USER_ID };

/** The records of a seed and those of the account that it lacks. */
export function withMockUser(seed: string): Buffer[] {
  const records = seed.split('\n').map(parseAccountRecord);
  // These lines come after the seed, so that its own line numbers stay.
  const added = [
    ...(records.some((one) => one?.type === 'user' && one.id === MOCK_USER_ID) ? [] : [MOCK_USER]),
    ...(records.some((one) => one?.type === 'api_key' && one.key === MOCK_API_KEY) ? [] : [MOCK_KEY]),
  ].map((record) => JSON.stringify(record));
  return [
    Buffer.from(seed === '' || seed.endsWith('\n') ? seed : `${seed}\n`),
    Buffer.from(added.join('\n')),
  ];
}

function parseAccountRecord(line: string): { type?: unknown; id?: unknown; key?: unknown } | null {
  if (!line.includes('"user"') && !line.includes(MOCK_API_KEY)) return null;
  try {
    return JSON.parse(line) as object | null;
  } catch {
    return null;
  }
}
