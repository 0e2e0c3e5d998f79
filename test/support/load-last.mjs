import Sequencer from '@jest/test-sequencer';

// Files that load the service or bound its delays. `.ci/run` builds the image beside the first files; these run after it.
const LOAD =
  /\/(control-client|event-loop|one-client|long-lists|html-thread|import-thread|pipelining|deadlines|stopping|faults|costs)\.test\.ts$/;

export default class LoadLast extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [
      ...sorted.filter(({ path }) => !LOAD.test(path)),
      ...sorted.filter(({ path }) => LOAD.test(path)),
    ];
  }
}
