// Nest 12 and a few others are ESM only, and jest cannot require() ESM on Node 20, nor import() at all: compile them too.
const esmOnly = [
  '@nestjs',
  '@nest-lab',
  'jose',
  'oauth4webapi',
  'openid-client',
  'file-type',
  '@tokenizer',
  'uint8array-extras',
  'token-types',
  'strtok3',
  'load-esm',
  'es-toolkit',
  'js-yaml',
  '@standard-schema',
  '@opentelemetry/otlp-exporter-base',
  '@kubernetes/client-node',
  '@redocly/openapi-core',
];

// Whatever the umask of the shell, other accounts and programs can read what the tests create, as in a default shell.
process.umask(0o022);

/** @type {import('jest').Config} */
module.exports = {
  rootDir: __dirname,
  // All configurations, and copies of this folder with a link to its packages, share the compiled files.
  id: 'gamewharf',
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  // They build the image and the package: `npm run test:image`, `npm run test:package`.
  testPathIgnorePatterns: [
    '/node_modules/',
    '/test/(system|load)/',
    '/test/deploy/(image|image-container|package)\\.test\\.ts$',
  ],
  // Its package.json has the name of the other one.
  modulePathIgnorePatterns: ['<rootDir>/dist/package/'],
  transform: { '^.+\\.[cm]?[jt]s$': ['@swc/jest', require('./test/support/swc.json')] },
  resolver: '<rootDir>/test/support/resolver.js',
  transformIgnorePatterns: [`/node_modules/(?!(${esmOnly.join('|')})/)`],
  testEnvironment: '<rootDir>/test/support/environment.mjs',
  // The service's deadlines are ten times as long, because a test may take longer on a busy machine.
  globals: { isPatient: true },
  setupFiles: ['<rootDir>/test/support/no-colors.js'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  reporters: ['default', '<rootDir>/test/support/closing-line.js'],
  testSequencer: '<rootDir>/test/support/slowest-first.mjs',
  maxWorkers: 2,
  // V8 lets the heap of a worker grow to 2 GB over a hundred files. A worker above the limit is replaced after its file.
  workerIdleMemoryLimit: '500MB',
  setupFilesAfterEnv: ['<rootDir>/test/support/timeout.js'],
  // Ends a test that hangs. No test takes this long, even on a busy machine; timeout.js has a shorter one for most tests.
  testTimeout: 300_000,
  // A worker has no handle open at its end, but V8 takes up to half a second, the default, to free the heap of forty files.
  workerGracefulExitTimeout: 10_000,
};
