/** For `npx jest --config test/screenshots.config.js`: one run that makes pictures instead of claims. */
module.exports = {
  ...require('../jest.config'),
  rootDir: '..',
  testMatch: ['<rootDir>/test/screenshots.ts'],
};
