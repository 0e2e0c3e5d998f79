import { statSync } from 'node:fs';
import Sequencer from '@jest/test-sequencer';

const sizeOf = ({ path }) => statSync(path).size;

/** What a unit test finds out needs no service that is started for it. */
export default class SmallestFirst extends Sequencer {
  sort(tests) {
    return tests.toSorted((a, b) => sizeOf(a) - sizeOf(b));
  }
}
