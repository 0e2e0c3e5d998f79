import { TestEnvironment } from 'jest-environment-node';
import './compile-once.mjs';
import { isKilled, kill } from './failure.mjs';

const RETRY_TIMES = Symbol.for('RETRY_TIMES');

/** Skips what is left of a file after its first failure, which jest's own `bail` does not. */
export default class UntilFailure extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    this.path = context.testPath;
  }

  handleTestEvent({ name, test }) {
    // One more try would be skipped as well, and a test that is skipped has not failed.
    if (name === 'run_start') delete this.global[RETRY_TIMES];
    if (name === 'test_done' && test.errors.length > 0) kill(this.path);
    // One that has an error before it starts is the failure: its `beforeAll` has failed.
    if (name === 'test_start' && isKilled() && test.errors.length === 0) test.mode = 'skip';
  }
}
