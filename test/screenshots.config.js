/** Configuration for `npx jest --config test/screenshots.config.js`, a run that takes screenshots. */
module.exports = {
  ...require('../jest.config'),
  rootDir: '..',
  testMatch: ['<rootDir>/test/screenshots.ts'],
};
