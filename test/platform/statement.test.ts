import { bind, read, statement } from '../../src/platform/database/statement';

const GAME = statement('game', 'SELECT $game_id::bigint, $name WHERE $game_id > 0', 'game $game_id');

test('named parameters are numbered in the order in which they first appear', () => {
  expect(GAME).toMatchObject({
    text: 'SELECT $1::bigint, $2 WHERE $1 > 0',
    parameters: ['game_id', 'name'],
    turns: 'game $1',
  });
});

test('values are bound by name', () => {
  expect(bind(GAME, { name: 'x', game_id: 7 }).values).toEqual([7, 'x']);
});

test('a missing value is an error, and so are values without names', () => {
  expect(() => bind(GAME, { game_id: 7 })).toThrow('game has no value for $name.');
  expect(() => bind(GAME, [7, 'x'])).toThrow('game has no value for $game_id.');
});

test('a statement with numbers takes values in their order', () => {
  expect(bind(read('numbered', 'SELECT $1, $2'), [1, 2]).values).toEqual([1, 2]);
});

test('names and numbers in one statement are an error', () => {
  expect(() => read('mixed', 'SELECT $1, $name')).toThrow('mixed has names and numbers.');
});
