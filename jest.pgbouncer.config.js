const base = require('./jest.config.js');

// All tests that speak to the service, each through a real PgBouncer in transaction mode.
module.exports = {
  ...base,
  globalSetup: '<rootDir>/test/support/pgbouncer-setup.ts',
  testPathIgnorePatterns: [
    ...base.testPathIgnorePatterns,
    // About the database server itself, and how it is reached past any pooler: migrations, plans, partitions, problems.
    '/test/[a-z]+/(database-problems|embedded-postgres|migrations|partitioning|plans|test-database)\\.test\\.ts$',
    // It starts a server of its own that logs every parameter.
    '/test/[a-z]+/canary\\.test\\.ts$',
    // About nothing that a database has to do with.
    '/test/[a-z]+/(settings|expiring-cache|walkthroughs|openapi|html-[a-z]+|express-adapter|broken-requests|outgoing-answer)\\.test\\.ts$',
    // About the processor time, the memory and the connections of one sender, which no pooler changes.
    '/test/[a-z]+/(bodies|control-client|event-loop|one-client|pipelining|standing-headers)\\.test\\.ts$',
    '/test/(system|contract|deploy)/',
  ],
};
