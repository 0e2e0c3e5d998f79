import { TestEnvironment } from 'jest-environment-node';
import './compile-once.mjs';
import { isKilled, kill } from './failure.mjs';

/** Skips what is left of a file after its first failure, which jest's own `bail` does not. */
export default class UntilFailure extends TestEnvironment {
  handleTestEvent({ name, test }) {
    if (name === 'test_fn_failure' || name === 'hook_failure') kill();
    if (name === 'test_start' && isKilled()) test.mode = 'skip';
  }
}
