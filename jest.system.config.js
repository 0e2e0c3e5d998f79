const base = require('./jest.config.js');

/** Tests of processes, browsers and client libraries, and those that take long but compare no durations. */
module.exports = {
  ...base,
  testMatch: ['<rootDir>/test/system/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testSequencer: '<rootDir>/test/support/slowest-first.mjs',
  testTimeout: 900_000,
};
