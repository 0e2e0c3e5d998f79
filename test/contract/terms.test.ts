import { termsIn } from '../../tools/scripts/terms.mjs';

test.each([
  ['An unknown game is a 404.', ['is a 404']],
  ['Unknown games are a 404.', ['are a 404']],
  ['Where is a 404 created?', []],
  ['An unknown game is rejected with 404.', []],
])('finds statuses in place of a verb: %s', (text, expected) => {
  expect([...termsIn(text)].map(([, found]) => found)).toEqual(expected);
});
