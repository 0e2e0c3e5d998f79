import { termsIn } from '../../tools/scripts/terms.mjs';

test.each([
  ['An unknown game is a 404.', ['is a 404']],
  ['Unknown games are a 404.', ['are a 404']],
  ['Where is a 404 created?', []],
  ['An unknown game is rejected with 404.', []],
  ['The first request gets a 503.', ['gets a 503']],
  ['The request fails with 503 with a header.', ['with 503 with']],
])('finds statuses in place of a verb: %s', (text, expected) => {
  expect([...termsIn(text)].map(([, found]) => found)).toEqual(expected);
});
