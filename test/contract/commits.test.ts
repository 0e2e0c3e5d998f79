import { findProblems } from '../../tools/scripts/commits.mjs';

test.each([
  ['fix(sales): lock the buyer'],
  ['feat!: embed the cover of a game'],
  ['build: add the parts of sign-in'],
  ['Merge branch "main"'],
])('accepts %s', (subject) => {
  expect(findProblems(subject)).toEqual([]);
});

test.each([
  ['a sale locks its buyer', 'use "type(scope): verb object"'],
  ['fix(log): no stack for a 503', '"no" isn\'t a verb'],
  ['fix(tools): generated migrations are last', '"generated" isn\'t a verb'],
  ['fix: lock the buyer; test it', 'one subject per commit'],
  [`fix: ${'lock '.repeat(15)}`, 'use at most 72'],
])('rejects %s', (subject, problem) => {
  expect(findProblems(subject)).toEqual([expect.stringContaining(problem)]);
});
