const base = require('./jest.config.js');

// The tests of the service, through a real PgBouncer in transaction mode.
module.exports = {
  ...base,
  globalSetup: '<rootDir>/test/support/pgbouncer-setup.ts',
  testPathIgnorePatterns: [
    ...base.testPathIgnorePatterns,
    // They test the database server itself, without a pooler.
    '/test/[a-z]+/(database-problems|migrations|partitioning|test-database)\\.test\\.ts$',
    // They don't use the database, or a pooler doesn't change what they test.
    '/test/[a-z]+/(bodies|broken-requests|expiring-cache|express-adapter|html|openapi|outgoing-response|settings|standing-headers)\\.test\\.ts$',
    '/test/(system|load|contract|deploy)/',
  ],
};
