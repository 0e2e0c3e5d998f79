import { bind, read, statement } from '../../src/platform/database/statement';

const GAME = statement('game', 'SELECT $game_id::bigint, $name WHERE $game_id > 0', 'game $game_id');

test('named parameters are numbered in the order in which they first appear', () => {
  expect(GAME).toMatchObject({
    text: 'SELECT $1::bigint, $2 WHERE $1 > 0',
    parameters: ['game_id', 'name'],
    concurrencyKey: 'game $1',
  });
});

test('values are bound by name', () => {
  expect(bind(GAME, { name: 'x', game_id: 7 }).values).toEqual([7, 'x']);
});

test('a missing value is an error', () => {
  expect(() => bind(GAME, { game_id: 7 })).toThrow('game has no value for $name.');
});

test('a parameter without a name is an error', () => {
  expect(() => read('numbered', 'SELECT $1, $name')).toThrow('numbered has a parameter without a name.');
});
