import { InvalidValue } from '../../src/platform/input/input-values';
import { RoundedNumber } from '../../src/platform/input/json';
import {
  readBoolean,
  readEmail,
  readIdList,
  readInteger,
  readNonEmptyText,
  readText,
} from '../../src/platform/input/readers';

const number = (source: string) => new RoundedNumber(source);
const rejected = expect.any(InvalidValue);

describe('integer', () => {
  test.each([
    ['0', 0],
    ['7', 7],
    ['9007199254740991', 9007199254740991],
    [number('12'), 12],
    [number('1e3'), 1000],
    [number('1E+3'), 1000],
    [number('1.50e1'), 15],
    [number('12.000'), 12],
    [number('1200e-2'), 12],
    [number('0'), 0],
    [number('0.00e9'), 0],
    [number('9007199254740991.0'), 9007199254740991],
  ])('reads %p as %p', (given, value) => expect(readInteger(given)).toBe(value));

  test.each([
    '9007199254740992',
    '9007199254740993',
    '9223372036854775807',
    number('9007199254740993'),
    number('9223372036854775807'),
    number('9.223372036854775807e18'),
  ])('reads %p as an ID that matches nothing', (given) => expect(readInteger(given)).toBe(0));

  test.each([
    'abc',
    '1.5',
    '1e3',
    '0x10',
    ' 12 ',
    '12 ',
    '+5',
    '-1',
    '',
    '007',
    '\u0661\u0662',
    '1\0',
    '9223372036854775808',
    '10000000000000000000',
    '99999999999999999999',
    number('1.5'),
    number('-1'),
    number('-0'),
    number('15e-1'),
    number('1e-400'),
    number('1e400'),
    number('1.00000000000000000001'),
    number('9007199254740991.4'),
    number('9223372036854775808'),
    number('"1"'),
    null,
    true,
    {},
    [1],
    ['1'],
  ])('rejects %p', (given) => expect(readInteger(given)).toEqual(new InvalidValue('must be an integer')));
});

test.each(['true', 'TRUE', '1', 'on', 'Yes', true, number('1')])('reads %p as true', (given) =>
  expect(readBoolean(given)).toBe(true),
);
test.each(['false', '0', 'OFF', 'no', false, number('0')])('reads %p as false', (given) =>
  expect(readBoolean(given)).toBe(false),
);
test.each(['', 'y', 'truee', number('2'), null, [], {}, 'constructor'])('rejects %p', (given) =>
  expect(readBoolean(given)).toEqual(new InvalidValue('must be a boolean')),
);

describe('text', () => {
  test.each(['', 'plain', 'ünï', '😀', '\ufffd'])('keeps %p', (given) => expect(readText(given)).toBe(given));
  test.each(['a\0b', '\ud800', 'x\udc00', '\ude00\ud83d', 1, null, [], {}, true])('rejects %p', (given) =>
    expect(readText(given)).toEqual(rejected),
  );
  test('rejects an empty selector', () =>
    expect(readNonEmptyText('')).toEqual(new InvalidValue('must not be empty')));
  test('reads a space in an email address as a plus sign', () =>
    expect(readEmail('a b@example.com')).toBe('a+b@example.com'));
});

describe('list of IDs', () => {
  test.each<[unknown, number[]]>([
    ['[]', []],
    [' [ ] ', []],
    ['[3,1,2]', [3, 1, 2]],
    ['[ 3 , 1 ]', [3, 1]],
    [
      [number('3'), '1'],
      [3, 1],
    ],
    [
      [number('9007199254740992'), number('9007199254740993')],
      [0, 0],
    ],
    ['[9007199254740992,9007199254740993]', [0, 0]],
  ])('reads %j as %j', (given, ids) => expect(readIdList(given)).toEqual(ids));

  test.each([
    '',
    '1',
    '1,2',
    '[1,]',
    '[,1]',
    '[1.5]',
    '[1e3]',
    '["1"]',
    '[[1]]',
    '[01]',
    '[-1]',
    '{}',
    'null',
    '[null]',
    null,
    5,
    {},
    [null],
    [[1]],
    [1.5],
  ])('rejects %j', (given) =>
    expect(readIdList(given)).toEqual(new InvalidValue('must be a JSON array of integers')),
  );

  test.each([
    ['[1,2,1]'],
    [[number('1'), number('1.0')]],
    [[number('9007199254740993'), number('9007199254740993')]],
  ])('rejects a repeated ID: %j', (given) =>
    expect(readIdList(given)).toEqual(new InvalidValue('must not contain an id twice')),
  );
  test('accepts 500 IDs and rejects 501', () => {
    const ids = Array.from({ length: 501 }, (_, i) => i + 1);
    expect(readIdList(JSON.stringify(ids.slice(1)))).toHaveLength(500);
    expect(readIdList(ids)).toEqual(new InvalidValue('must have at most 500 ids'));
  });
});
