const base = require('./jest.config.js');

/** Tests of processes, faults, load and browsers: one file at a time. */
module.exports = {
  ...base,
  testMatch: ['<rootDir>/test/system/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testSequencer: '<rootDir>/test/support/load-last.mjs',
  maxWorkers: 1,
  testTimeout: 900_000,
};
