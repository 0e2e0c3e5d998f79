/**
 * A client as a TypeScript developer writes it. The test next to this folder packs the package, unpacks it in an empty
 * folder, checks this file against its types there, and runs it: `node shop.js ADDRESS KEY`.
 */
import { createClient, type components } from 'gamewharf/client';

const [baseUrl, key] = process.argv.slice(2);
const client = createClient({ baseUrl, headers: { authorization: `Bearer ${key}` } });

async function main(): Promise<void> {
  const { data: profile } = await client.GET('/profile');
  if (!profile) throw new Error('no profile');
  profile.user.username satisfies string;
  // @ts-expect-error There is no such field.
  void profile.user.name;

  const { data } = await client.GET('/profile/games');
  const games: components['schemas']['GameResponse'][] = data?.games ?? [];
  const [game] = games;
  if (!game) throw new Error('no game');

  const collection = await client.POST('/collections', { body: { title: 'Typed', game_id: game.id } });
  // @ts-expect-error There is no such route.
  void (() => client.GET('/nowhere'));
  const rejected = await client.GET('/games/{game_id}', { params: { path: { game_id: 999_999_999 } } });
  console.log(
    JSON.stringify({
      username: profile.user.username,
      title: collection.data?.collection.title,
      games_count: collection.data?.collection.games_count,
      rejected: rejected.error?.errors,
    }),
  );
}

void main();
