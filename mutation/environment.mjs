import { TestEnvironment } from 'jest-environment-node';
import './compile-once.mjs';
import { isKilled, kill } from './failure.mjs';

/** Skips what is left of a file after its first failure, which jest's own `bail` does not. */
export default class UntilFailure extends TestEnvironment {
  handleTestEvent({ name, test }) {
    if (name === 'test_done' && test.errors.length > 0) kill();
    // One that has an error before it starts is the failure: its `beforeAll` has failed.
    if (name === 'test_start' && isKilled() && test.errors.length === 0) test.mode = 'skip';
  }
}
