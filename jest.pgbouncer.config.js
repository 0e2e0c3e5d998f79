const base = require('./jest.config.js');

// All tests that speak to the service, each through a real PgBouncer in transaction mode.
module.exports = {
  ...base,
  globalSetup: '<rootDir>/test/support/pgbouncer-setup.ts',
  testPathIgnorePatterns: [
    ...base.testPathIgnorePatterns,
    // About connections and the database server itself, which nobody pools: migrations go to it directly, as docs/operations.md says.
    '/test/(embedded-postgres|gathering|migrations|partitioning|plans|test-database)\\.test\\.ts$',
    // About nothing that a database has to do with.
    '/test/(deploy|settings|short-memory)\\.test\\.ts$',
    '/test/(unit|contract)/',
  ],
};
