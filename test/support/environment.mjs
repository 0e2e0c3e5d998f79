import { TestEnvironment } from 'jest-environment-node';

/** Adds the errors that the service logged to the report of a failed test, which shows only the response. */
export default class ServiceEnvironment extends TestEnvironment {
  /** Entries of the log that belong to earlier tests. */
  earlier = 0;

  handleTestEvent({ name, test }) {
    if (name !== 'test_done') return;
    const log = this.global.serviceLog ?? [];
    const errors = test.errors.length > 0 ? errorsIn(log.slice(this.earlier).join('')) : [];
    this.earlier = log.length;
    if (errors.length > 0) test.errors.push({ stack: ['The service logged:', ...errors].join('\n\n') });
  }
}

const errorsIn = (log) =>
  log
    .split('\n')
    .filter((line) => /"level":"(error|fatal)"/.test(line))
    .map((line) => {
      const { msg, err, stack = err?.stack ?? err?.message, ...fields } = JSON.parse(line);
      return [msg, JSON.stringify(fields), stack].filter(Boolean).join('\n');
    });
