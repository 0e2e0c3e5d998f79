export interface Target {
  mutate: string[];
  /** That notice when these files are wrong. All others would take time and notice nothing else. */
  tests: string[];
}

const under = (folder: string, ...names: string[]) => names.map((name) => `${folder}/${name}.ts`);
const tests = (...names: string[]) => names.map((name) => `test/${name}.test.ts`);

export const TARGETS: Record<string, Target> = {
  money: {
    mutate: [
      'src/platform/formats/money.ts',
      'src/operator/import/earnings.ts',
      ...under('src/games', 'game.dto', 'games.service'),
      ...under('src/purchases', 'purchase.dto', 'purchases.service', 'earnings'),
      ...under('src/purchases', 'game-sale.dto', 'game-sales.service'),
      ...under('src/selling', 'sale.dto', 'sales.service', 'sale-statements', 'same-sale', 'recount'),
    ],
    tests: tests(
      'unit/money',
      'profile',
      'purchases',
      'game-sales',
      'sales-pages',
      'ownership',
      'selling',
      'till',
      'importing-sales',
      'long-lists',
      'jwt',
    ),
  },
  scopes: {
    mutate: [...under('src/auth', 'access', 'scopes', 'scopes.guard'), 'src/auth/oauth/oauth-scopes.ts'],
    tests: tests(
      'unit/scopes',
      'unit/oauth-scopes',
      'unit/scopes-guard',
      'auth-command',
      'authorisation',
      'credentials',
      'operators',
    ),
  },
  ordering: {
    mutate: under(
      'src/collections',
      'collection-game.dto',
      'collection-games.controller',
      'collection-games.service',
      'collection-lock',
      'refusals',
      'visibility',
    ),
    tests: tests(
      'collection-games',
      'collections',
      'collections-parameters',
      'collections-commands',
      'collections-concurrency',
      'long-lists',
      'standby',
    ),
  },
  keys: {
    mutate: [
      ...under('src/auth', 'api-key', 'credential', 'refusals', 'sealed'),
      'src/platform/cache/expiring-cache.ts',
    ],
    tests: tests(
      'unit/api-key',
      'unit/presented',
      'unit/scopes',
      'unit/refusals',
      'unit/sealed',
      'expiring-cache',
    ),
  },
  ownership: {
    mutate: [
      ...under('src/games', 'key-owners', 'visibility'),
      ...under('src/purchases', 'download-key.dto', 'download-keys.service'),
      ...under(
        'src/purchases',
        'owned-key.dto',
        'owned-keys.service',
        'ownership.controller',
        'ownership.service',
      ),
    ],
    tests: tests('download-keys', 'ownership', 'collection-games', 'game-sales', 'purchases'),
  },
  credentials: {
    mutate: [
      ...under('src/auth', 'api-key', 'api-key-lookup', 'api-keys.service'),
      ...under('src/auth', 'bearer.strategy', 'key-changes'),
      'src/platform/cache/change-poller.ts',
    ],
    tests: tests('unit/key-changes', 'credentials', 'auth-command', 'remembered-credentials'),
  },
  tokens: {
    mutate: under('src/auth', 'signing-key', 'signing-keys.service', 'tokens.service'),
    tests: tests('jwt', 'auth-command'),
  },
  grants: {
    mutate: [
      ...under('src/auth/oauth', 'oauth-codes.service', 'oauth-tokens.service', 'grants.service'),
      ...under(
        'src/auth/oauth',
        'authorization-requests.service',
        'redirect-uris',
        'device-requests.service',
      ),
      ...under('src/auth/oauth', 'authorization.controller', 'oauth.controller'),
    ],
    tests: tests(
      'unit/authorization-requests',
      'unit/redirect-uris',
      ...['requests', 'consent', 'implicit', 'codes', 'refresh', 'devices', 'metadata'].map(
        (noun) => `oauth-${noun}`,
      ),
    ),
  },
  'sign-in': {
    mutate: [
      ...under('src/auth/sign-in', 'attempts.service', 'password-hash', 'password-queue'),
      ...under('src/auth/sign-in', 'sessions.service', 'sign-in.service'),
      'src/dashboard/layout/visitors.ts',
    ],
    tests: tests('accounts', 'accounts-settings'),
  },
};
