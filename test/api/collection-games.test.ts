import { FIRST_PAGE, LATER_PAGE } from '../../src/collections/collection-games-list.service';
import { Database } from '../../src/platform/database/database';
import { bind, type BoundStatement } from '../../src/platform/database/statement';
import { type Actor } from '../support/actor';
import { theApp, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore();

interface Entry {
  game_id: number;
  position: number;
}

async function page(actor: Actor, id: number, query: Record<string, unknown> = {}): Promise<Entry[]> {
  const { status, body } = await actor.get(`/collections/${id}/collection-games`, query);
  expect(status).toBe(200);
  return (body as { collection_games: Entry[] }).collection_games;
}

const positions = (entries: Entry[]) => entries.map(({ position }) => position);

describe('GET /collections/ID/collection-games', () => {
  test('returns an entry with its game', async () => {
    const { owner, developer, stranger } = await actors();
    const game = await make.game({
      owner: developer,
      title: 'Paper Boats',
      slug: 'paper-boats',
      short_text: 'Fold and sail',
      cover_url: 'https://img.example/1.png',
      traits: ['p_linux', 'has_demo'],
      min_price: 250,
      published_at: '2024-05-06T07:08:09.9Z',
      created_at: '2024-05-05T07:08:09.9Z',
    });
    const { id } = await make.collection({ owner, games: [game] });
    await sql(
      `UPDATE collection_games SET blurb = '<b>x</b>', created_at = '2024-06-01T00:00:00.5Z' WHERE collection_id = $1`,
      [id],
    );
    expect(await stranger.get(`/collections/${id}/collection-games`)).toEqual(
      ok({
        page: 1,
        per_page: 100,
        collection_games: [
          {
            collection_id: id,
            game_id: game.id,
            position: 1,
            blurb: '<b>x</b>',
            user_id: owner.id,
            created_at: '2024-06-01T00:00:00Z',
            game: {
              id: game.id,
              title: 'Paper Boats',
              short_text: 'Fold and sail',
              url: `https://${developer.username}.gamewharf.example/paper-boats`,
              cover_url: 'https://img.example/1.png',
              type: 'default',
              classification: 'game',
              traits: ['p_linux', 'has_demo'],
              min_price: 250,
              published_at: '2024-05-06T07:08:09Z',
              created_at: '2024-05-05T07:08:09Z',
            },
          },
        ],
      }),
    );
  });

  test('returns 404 for a private collection and a missing one', async () => {
    const { owner, admin, stranger } = await actors();
    const { id } = await make.collection({ owner, admins: [admin], private: true });
    for (const missing of [id, id + 1000])
      expect(await stranger.get(`/collections/${missing}/collection-games`)).toEqual(
        failure(404, 'invalid collection'),
      );
    expect(await admin.get(`/collections/${id}/collection-games`)).toEqual(
      ok({ page: 1, per_page: 100, collection_games: [] }),
    );
  });

  test.each([
    ['page', '0', 'page must be between 1 and 1000000'],
    ['page', '1000001', 'page must be between 1 and 1000000'],
    ['page', '9007199254740993', 'page must be between 1 and 1000000'],
    ['page', '9223372036854775807', 'page must be between 1 and 1000000'],
    ['page', '9223372036854775808', 'page must be an integer'],
    ['page', '-1', 'page must be an integer'],
    ['page', '1e30', 'page must be an integer'],
    ['per_page', '0', 'per_page must be between 1 and 500'],
    ['per_page', '501', 'per_page must be between 1 and 500'],
  ])('%s=%s', async (name, value, problem) => {
    const { owner } = await actors();
    const { id } = await make.collection({ owner });
    expect(await owner.get(`/collections/${id}/collection-games`, { [name]: value })).toEqual(
      failure(400, problem),
    );
  });

  test.each(['2', '1000', '1000000'])('returns an empty page %s past the end', async (page) => {
    const { owner } = await actors();
    const { id } = await make.collection({ owner, games: [await make.game({ owner })] });
    const { status, body } = await owner.get(`/collections/${id}/collection-games`, {
      page,
      per_page: 500,
    });
    expect([status, body]).toMatchObject([200, { collection_games: [] }]);
  });

  test('fills pages with the entries that the caller can view and counts all in positions', async () => {
    const { owner, admin, developer, stranger } = await actors();
    const buyer = await make.user({ emails: [{ email: 'buyer@example.com', verified: true }] });
    const helper = await make.user();
    const games: { id: number }[] = [];
    for (let n = 1; n <= 23; n++)
      games.push(
        await make.game({
          owner: developer,
          admins: n === 8 ? [helper] : [],
          ...(n % 4 === 0 ? { visibility: 'private' } : {}),
          ...(n % 5 === 0 ? { visibility: 'restricted' } : {}),
          ...(n % 7 === 0 ? { published_at: null } : {}),
        }),
      );
    await make.downloadKey({ game: games[4]!, user_id: buyer.id });
    await make.downloadKey({ game: games[14]!, email: 'Buyer@example.com' });
    await make.downloadKey({ game: games[9]!, user_id: buyer.id, revoked_at: '2024-01-01' });
    await make.collection({ owner, games: games.toReversed() });
    const { id } = await make.collection({ owner, admins: [admin], games });
    const hidden = (n: number) => n % 4 === 0 || n % 5 === 0 || n % 7 === 0;
    const all = games.map((_, i) => i + 1);
    const seenBy = new Map<Actor, number[]>([
      [stranger, all.filter((n) => !hidden(n))],
      // An editor of the collection can't view other users' private games.
      [owner, all.filter((n) => !hidden(n))],
      [buyer, all.filter((n) => !hidden(n) || n === 5 || n === 15)],
      [helper, all.filter((n) => !hidden(n) || n === 8)],
      [developer, all],
    ]);
    for (const [actor, seen] of seenBy)
      for (const per_page of [1, 3, 7, 100]) {
        const pages: Entry[][] = [];
        do pages.push(await page(actor, id, { page: pages.length + 1, per_page }));
        while (pages.at(-1)!.length === per_page);
        const entries = pages.flat();
        expect(positions(entries)).toEqual(seen);
        expect(entries.map(({ game_id }) => game_id)).toEqual(seen.map((n) => games[n - 1]!.id));
        expect(pages.slice(0, -1).every(({ length }) => length === per_page)).toBe(true);
      }
    expect(await stranger.get(`/collections/${id}`)).toMatchObject({
      body: { collection: { games_count: 23 } },
    });
    expect(await page(stranger, id, { page: '1000000', per_page: 500 })).toEqual([]);
  });

  describe('100,000 entries', () => {
    let huge: { id: number };
    let reader: Actor;

    beforeAll(async () => {
      const { owner, stranger } = await actors();
      reader = stranger;
      huge = await make.collection({ owner });
      await sql(
        `INSERT INTO games (user_id, slug, title, published_at, visibility)
         SELECT $1, 'huge-' || n, 'Game ' || n, now(), CASE WHEN n % 10 = 0 THEN 'private' ELSE 'public' END
         FROM generate_series(1, 100000) n`,
        [owner.id],
      );
      await sql(
        `INSERT INTO collection_games (collection_id, game_id, sort_key, user_id)
         SELECT $1, id, (row_number() OVER (ORDER BY id)) * 3 - 150000, $2 FROM games WHERE slug LIKE 'huge-%'`,
        [huge.id, owner.id],
      );
      // Waits until it is on disk. Before that, VACUUM marks no page as all-visible.
      await sql(
        `SET LOCAL synchronous_commit = on; UPDATE collections SET games_count = 100000 WHERE id = ${huge.id}`,
      );
      // Autovacuum does this after so many inserts. A concurrent transaction on these rows prevents marking them.
      await until(async () => {
        await sql('VACUUM (ANALYZE) collection_games, games, collections, users');
        const marked = await sql(
          `SELECT FROM pg_class WHERE oid = 'collection_games'::regclass AND relallvisible > relpages * 0.9`,
        );
        return marked.length === 1;
      });
    });

    test('returns a page from the middle', async () => {
      const entries = await page(reader, huge.id, { page: 451, per_page: 100 });
      // Nine of ten games are visible: 45,000 precede the page, along with 5,000 that are not visible.
      expect(positions(entries)).toEqual(
        Array.from({ length: 112 }, (_, i) => 50_001 + i)
          .filter((position) => position % 10 !== 0)
          .slice(0, 100),
      );
      expect(await page(reader, huge.id, { page: 901, per_page: 100 })).toEqual([]);
    });

    test('returns 100 entries per page by default and up to 500 on request', async () => {
      const [first, second] = [await page(reader, huge.id), await page(reader, huge.id, { page: 2 })];
      expect([first.length, second.length]).toEqual([100, 100]);
      const most = await page(reader, huge.id, { per_page: 500 });
      expect(most).toHaveLength(500);
      expect(most.slice(0, 200)).toEqual([...first, ...second]);
    });

    // The planner may use a custom or a generic plan.
    describe.each(['force_custom_plan', 'force_generic_plan'])('with %s', (mode) => {
      test.each([
        ['the first page', FIRST_PAGE, 0, 1],
        ['a page from the middle', LATER_PAGE, 45_000, 3],
      ] as const)('%s walks the index without sorting', async (_, statement, offset, walks) => {
        const values = { collection_id: huge.id, user_id: reader.id, limit: 100, offset };
        const plan = await explainAnalyze(mode, bind(statement, values));
        expect(plan.filter((node) => /Sort/.test(node['Node Type']))).toEqual([]);
        const entries = plan.filter((node) => node['Relation Name'] === 'collection_games');
        expect(new Set(entries.map((node) => node['Index Name']))).toEqual(
          new Set(['collection_games_sort_key_key']),
        );
        expect(entries).toHaveLength(walks);
        // The plan fetches only the rows of the page, visible or not, and one to detect the next page.
        expect(Math.min(...entries.map((node) => node['Actual Rows']))).toBeLessThanOrEqual(113);
        const games = plan.filter((node) => node['Relation Name'] === 'games');
        const asked = ['games_hidden_idx', 'games_hash_idx'].slice(-games.length);
        expect(games.map((node) => node['Index Name'])).toEqual(asked);
        expect(games.at(-1)!['Actual Loops']).toBeLessThanOrEqual(113);
      });
    });

    interface PlanNode {
      'Node Type': string;
      'Relation Name'?: string;
      'Index Name'?: string;
      'Actual Rows': number;
      'Actual Loops': number;
      Plans?: PlanNode[];
    }

    async function explainAnalyze(mode: string, { statement, values }: BoundStatement): Promise<PlanNode[]> {
      const plan = await theApp()
        .get(Database)
        .transaction(async (db) => {
          // With two collections in total the planner expects 50,000 entries in each, and would use JIT compilation.
          await db.query('SET LOCAL jit = off');
          await db.query(`SET LOCAL plan_cache_mode = ${mode}`);
          await db.query(`PREPARE explained AS ${statement.text}`);
          const rows = await db.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }[]>(
            `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE explained (${values.join(', ')})`,
          );
          await db.query('DEALLOCATE explained');
          return rows[0]!['QUERY PLAN'][0].Plan;
        });
      const nodes = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
      return nodes(plan);
    }
  });
});

describe('writes only the named rows', () => {
  const versions = async (id: number) =>
    new Map(
      (
        await sql<{ game_id: number; version: string }>(
          'SELECT game_id, xmin::text || cmin::text || ctid::text AS version FROM collection_games WHERE collection_id = $1',
          [id],
        )
      ).map(({ game_id, version }) => [game_id, version]),
    );

  test('adds, removes and orders', async () => {
    const { owner } = await actors();
    const games = await Promise.all(Array.from({ length: 30 }, () => make.game({ owner })));
    const extra = await make.game({ owner });
    const { id } = await make.collection({ owner, games });
    let before = await versions(id);
    const written = async () => {
      const after = await versions(id);
      const ids = new Set([...before.keys(), ...after.keys()]);
      const changed = [...ids].filter((game) => before.get(game) !== after.get(game));
      before = after;
      return changed.toSorted((a, b) => a - b);
    };
    await owner.post(`/collections/${id}/add-game`, { game_id: extra.id });
    expect(await written()).toEqual([extra.id]);
    const [a, b, c] = [games[20]!.id, games[3]!.id, games[9]!.id].toSorted((x, y) => x - y);
    await owner.post(`/collections/${id}/order`, { game_ids: [a, b], remove_game_ids: [c] });
    expect(await written()).toEqual([a, b, c]);
    await owner.post(`/collections/${id}/remove-game`, { game_id: b });
    expect(await written()).toEqual([b]);
  });
});

describe.each<Record<string, string>>([{}, { 'idempotency-key': 'a' }])(
  'a game that becomes private during a write with %j',
  (headers) => {
    beforeEach(() =>
      sql(`
      CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN UPDATE games SET visibility = 'private' WHERE id = NEW.game_id; RETURN NULL; END $$;
      CREATE TRIGGER hide AFTER INSERT OR UPDATE ON collection_games FOR EACH ROW EXECUTE FUNCTION hide()`),
    );
    afterEach(() => sql('DROP FUNCTION hide CASCADE'));

    const writeBlurb = (actor: Actor, path: string, game_id: number) =>
      send('POST', path, {
        headers: { ...actor.headers, ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ game_id, blurb: '<b>new</b>' }),
      });
    const blurbs = (id: number) => sql('SELECT blurb FROM collection_games WHERE collection_id = $1', [id]);
    const written = { status: 200, body: { collection_game: { position: 1, blurb: '<b>new</b>' } } };

    test('is added, and the response has the entry', async () => {
      const { owner, stranger } = await actors();
      const game = await make.game({ owner: stranger });
      const { id } = await make.collection({ owner });
      expect(await writeBlurb(owner, `/collections/${id}/add-game`, game.id)).toMatchObject(written);
      expect(await blurbs(id)).toEqual([{ blurb: '<b>new</b>' }]);
      expect(await owner.post(`/collections/${id}/add-game`, { game_id: game.id })).toEqual(
        failure(404, 'invalid game'),
      );
    });

    test('gets its new blurb, and the response has it', async () => {
      const { owner, stranger } = await actors();
      const game = await make.game({ owner: stranger });
      const { id } = await make.collection({ owner });
      await sql('ALTER TABLE collection_games DISABLE TRIGGER hide');
      await owner.post(`/collections/${id}/add-game`, { game_id: game.id });
      await sql('ALTER TABLE collection_games ENABLE TRIGGER hide');
      const path = `/collections/${id}/collection-games/${game.id}`;
      expect(await writeBlurb(owner, path, game.id)).toMatchObject(written);
      expect(await blurbs(id)).toEqual([{ blurb: '<b>new</b>' }]);
      expect(await owner.post(path, { blurb: 'x' })).toEqual(failure(404, 'game is not in the collection'));
    });
  },
);
