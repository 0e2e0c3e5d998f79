/**
 * Prints one line of totals at the end of a run, after the skipped tests and their reasons (test/support/run-if.ts).
 */
module.exports = class ClosingLine {
  constructor({ rootDir, testNamePattern }) {
    this.rootDir = rootDir;
    this.testNamePattern = testNamePattern;
    // jest prints its own summary after all other reporters, so only the exit is later.
    process.once('exit', () => process.stderr.write(this.text ?? ''));
  }

  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests + results.numTodoTests;
    // With -t, nearly all tests are skipped, for a known reason.
    const lines = this.testNamePattern || skipped === 0 ? [] : ['Skipped:', ...this.reasons(results), ''];
    lines.push(`${results.numPassedTests} passed, ${failed} failed, ${skipped} skipped`);
    this.text = `\n${lines.join('\n')}\n`;
  }

  reasons({ testResults }) {
    const counts = new Map();
    for (const file of testResults)
      for (const { fullName, status } of file.testResults) {
        if (status !== 'pending' && status !== 'todo') continue;
        const reason = /\[skipped: (.+?)\]/.exec(fullName)?.[1] ?? 'no reason given';
        const path = file.testFilePath.slice(this.rootDir.length + 1);
        const entry = `  ${path}: ${reason}`;
        counts.set(entry, (counts.get(entry) ?? 0) + 1);
      }
    return [...counts].sort().map(([entry, count]) => `${entry} (${count})`);
  }
};
