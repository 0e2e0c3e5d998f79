import Sequencer from '@jest/test-sequencer';

// Files that are slow for their size. Started last, one of them would keep a single worker busy at the end.
const SLOW =
  /\/(walkthroughs|pages-browser|importing|importing-races|importing-corrections|webhooks|people|sales-pages|migrations)\.test\.ts$/;

export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [
      ...sorted.filter(({ path }) => SLOW.test(path)),
      ...sorted.filter(({ path }) => !SLOW.test(path)),
    ];
  }
}
