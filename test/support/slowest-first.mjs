import Sequencer from '@jest/test-sequencer';

// Files whose time their size does not show. Begun last, one of them would keep a single worker busy at the end.
const SLOW =
  /\/(walkthroughs|accounts-browser|embedded-postgres|importing|bystander|sales-pages|backup|plans|command)\.test\.ts$/;

export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [
      ...sorted.filter(({ path }) => SLOW.test(path)),
      ...sorted.filter(({ path }) => !SLOW.test(path)),
    ];
  }
}
