/** For `npm run mutation`, which has started the database: many runs, each of which ends at its first failure. */
module.exports = {
  ...require('../../jest.config'),
  rootDir: '../..',
  globalSetup: undefined,
  globalTeardown: undefined,
  testEnvironment: require.resolve('./environment.mjs'),
  testRunner: require.resolve('./jest-circus-until-failure.mjs'),
  testSequencer: require.resolve('./last-to-fail-first.mjs'),
};
