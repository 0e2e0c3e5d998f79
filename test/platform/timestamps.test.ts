import { legacyTimestamp, modernTimestamp } from '../../src/platform/formats/timestamps';

test.each([
  ['2013-03-03 23:02:14+00', '2013-03-03T23:02:14Z', '2013-03-03 23:02:14'],
  ['2013-03-03 23:02:14.987+00', '2013-03-03T23:02:14Z', '2013-03-03 23:02:14'],
  ['2013-03-04 00:02:14.9+01', '2013-03-03T23:02:14Z', '2013-03-03 23:02:14'],
])('%s', (text, modern, legacy) => {
  expect([modernTimestamp(text), legacyTimestamp(text)]).toEqual([modern, legacy]);
});
