const base = require('./jest.system.config.js');

/** Tests that load the service or compare durations: one file at a time. */
module.exports = {
  ...base,
  testMatch: ['<rootDir>/test/load/*.test.ts'],
  maxWorkers: 1,
  globals: { isPatient: false },
};
