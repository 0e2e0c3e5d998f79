/** For `npm run mutation:sql`: the same, with one statement changed. */
module.exports = {
  ...require('./jest.config'),
  transform: { '^.+\\.[cm]?[jt]s$': require.resolve('./sql-transform.mjs') },
  testRunner: undefined,
};
