import { TestEnvironment } from 'jest-environment-node';
import './compile-once.mjs';
import { isKilled, kill } from './failure.mjs';

/** Skips what is left of a file after its first failure, which jest's own `bail` does not. */
export default class UntilFailure extends TestEnvironment {
  handleTestEvent({ name, test }) {
    if (name === 'test_fn_failure' || name === 'hook_failure') kill();
    // A test whose `beforeAll` has failed is the failure.
    if (name === 'test_start' && isKilled() && test.errors.length === 0) test.mode = 'skip';
  }
}
