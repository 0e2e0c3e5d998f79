import { statSync } from 'node:fs';
import Sequencer from '@jest/test-sequencer';
import { lastToFail } from './failure.mjs';

const costOf = ({ path }) => (path === lastToFail ? 0 : statSync(path).size);

/** Then the smallest: what a unit test finds out needs no service that is started for it. */
export default class LastToFailFirst extends Sequencer {
  sort(tests) {
    return tests.toSorted((a, b) => costOf(a) - costOf(b));
  }
}
