/** Of `npm run mutation`, which adds what to mutate and the tests that may notice: tools/mutation/targets.ts. */
export default {
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner', './tools/mutation/ignorers.mjs'],
  ignorers: ['words'],
  coverageAnalysis: 'perTest',
  jest: { configFile: 'tools/mutation/jest.config.js', enableFindRelatedTests: false },
  concurrency: 1,
  // Each run leaves the modules of an application behind.
  maxTestRunnerReuse: 60,
  timeoutMS: 60_000,
  timeoutFactor: 1.5,
  thresholds: { high: 95, low: 90, break: 90 },
  reporters: ['progress-append-only', 'clear-text', 'html', 'json'],
  clearTextReporter: { logTests: false, reportTests: false, reportScoreTable: true },
  ignorePatterns: ['.data', '.bench', '.soak', 'coverage', 'dist', 'reports', 'docs/screenshots'],
  cleanTempDir: 'always',
  disableTypeChecks: false,
};
