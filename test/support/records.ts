/** Records with the required fields only. */
export const user = (id: number, fields: object = {}) => ({
  type: 'user',
  id,
  username: `user${id}`,
  ...fields,
});
export const game = (id: number, fields: object = {}) => ({
  type: 'game',
  id,
  user_id: 1,
  slug: `game-${id}`,
  title: `Game ${id}`,
  ...fields,
});
export const purchase = (id: number, fields: object = {}) => ({
  type: 'purchase',
  id,
  game_id: 1,
  email: 'buyer@example.com',
  source: 'card',
  currency: 'USD',
  amount: 500,
  ...fields,
});
export const bundle = (id: number, fields: object = {}) => ({
  type: 'bundle',
  id,
  user_id: 1,
  slug: `bundle-${id}`,
  title: `Bundle ${id}`,
  game_ids: [3, 1, 2],
  ...fields,
});
export const downloadKey = (id: number, fields: object = {}) => ({
  type: 'download_key',
  id,
  key: `key-${id}`,
  game_id: 1,
  ...fields,
});
export const collection = (id: number, fields: object = {}) => ({
  type: 'collection',
  id,
  user_id: 1,
  title: 'Best',
  ...fields,
});
export const upload = (id: number, fields: object = {}) => ({
  type: 'upload',
  id,
  game_id: 1,
  filename: 'moon.zip',
  ...fields,
});
export const build = (id: number, fields: object = {}) => ({
  type: 'build',
  id,
  game_id: 1,
  channel_name: 'windows',
  ...fields,
});
