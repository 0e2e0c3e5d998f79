import { make, ok, useStore } from './support/store';

useStore();

test('GET /profile', async () => {
  const user = await make.user({ username: 'leaf', display_name: 'Leaf', developer: true, press_user: true });
  expect(await user.get('/profile')).toEqual(
    ok({
      user: {
        id: user.id,
        username: 'leaf',
        display_name: 'Leaf',
        gamer: true,
        developer: true,
        press_user: true,
        url: 'https://leaf.gamewharf.example',
        cover_url: null,
      },
    }),
  );
});
