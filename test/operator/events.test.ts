import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { announcement } from '../../src/events/announcement';
import type { EventType } from '../../src/events/event-type';
import { Events } from '../../src/events/events';
import { EventsModule } from '../../src/events/events.module';
import { announceToEditors } from '../../src/games/game-events';
import { WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { WebhooksService } from '../../src/operator/webhooks/webhooks.service';
import { Database } from '../../src/platform/database/database';
import { bind, type BoundStatement, read } from '../../src/platform/database/statement';
import { OPERATOR_TOKEN } from '../support/importing';
import { openApp, theApp, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { closeReceivers, Receiver, type Responding } from '../support/webhook-receiver';

const GAME_TESTED: EventType = {
  name: 'game.tested',
  title: 'Test of game',
  sent_when: 'somebody tests a game',
  audience: 'editors',
  subject_type: 'game',
  readAtSend: read<{ title: string }>(
    'tested_title',
    'SELECT title FROM games WHERE id = $subject_id AND ($webhook_user_id::bigint IS NULL OR $webhook_user_id > 0)',
  ),
};
const ACCOUNT_TESTED: EventType = {
  name: 'account.tested',
  title: 'Test of account',
  sent_when: 'somebody tests an account',
  audience: 'operator',
  subject_type: 'user',
};

const TEST_GAME = announceToEditors(GAME_TESTED, {
  from: 'games g',
  where: 'g.id = $game_id',
  subject_id: 'g.id',
  game_ids: 'ARRAY[g.id]',
  fields: { visibility: 'g.visibility' },
});
const TEST_ACCOUNT = announcement(ACCOUNT_TESTED, {
  from: 'users u',
  where: 'u.id = $user_id',
  subject_id: 'u.id',
  fields: {},
});

useStore({ OPERATOR_TOKEN });

let app: INestApplication;

beforeAll(async () => {
  // Only the application that knows these types may deliver.
  theApp().get(WebhookDeliveries).beforeApplicationShutdown();
  // At most two deliveries to users at a time, and one to each user.
  const environment = { MAX_CONNECTIONS: '64' };
  app = await openApp(environment, { imports: [EventsModule.forFeature([GAME_TESTED, ACCOUNT_TESTED])] });
});
afterEach(async () => {
  closeReceivers();
  await sql('DELETE FROM webhooks');
});

async function receiver(
  webhook: { events: string[]; game_id?: number; user_id?: number },
  response?: Responding,
): Promise<Receiver> {
  const receiver = await Receiver.open(response);
  const added = { game_id: null, ...webhook, url: receiver.url };
  Object.assign(receiver, await app.get(WebhooksService).add(added));
  return receiver;
}

async function announce(statement: BoundStatement): Promise<void> {
  await app.get(Database).execute([statement]);
  app.get(Events).announced();
  await until(async () => (await sql('SELECT FROM webhook_deliveries')).length === 0);
}

const types = (of: Receiver) => of.messages.map(({ type }) => type);

test('a module announces an event about its games to the webhooks of their editors and of the store', async () => {
  const { owner, stranger } = await actors();
  const game = await make.game({ owner, title: 'Kite' });
  const events = ['game.tested', 'purchase.completed'];
  const [own, others, store, ofGame, ofOther] = await Promise.all([
    receiver({ events, user_id: owner.id, game_id: 0 }),
    receiver({ events, user_id: stranger.id, game_id: 0 }),
    receiver({ events }),
    receiver({ events, game_id: game.id }),
    receiver({ events, game_id: (await make.game({ owner })).id }),
  ]);
  await announce(bind(TEST_GAME, { game_id: game.id }));
  for (const notified of [own, store, ofGame]) {
    expect(notified.messages).toMatchObject([
      {
        type: 'game.tested',
        genuine: true,
        data: { id: game.id, game_ids: [game.id], visibility: 'public', title: 'Kite' },
      },
    ]);
  }
  expect([...types(others), ...types(ofOther)]).toEqual([]);
  // Attempts are recorded after their messages are deleted.
  const attempts = () => sql('SELECT subject_type, subject_id FROM webhook_attempts');
  await until(async () => (await attempts()).length > 0);
  expect(await attempts()).toEqual([{ subject_type: 'game', subject_id: game.id }]);
});

test('an event for operators reaches only the webhooks of the store that name it', async () => {
  const { owner } = await actors();
  const known = app.get(Events);
  const all = known.forEditors.map(({ name }) => name);
  expect(all).toContain('game.tested');
  expect(all).not.toContain('account.tested');
  const [naming, ofAll, ofUser] = await Promise.all([
    receiver({ events: ['account.tested'] }),
    receiver({ events: all }),
    receiver({ events: ['account.tested'], user_id: owner.id, game_id: 0 }),
  ]);
  await announce(bind(TEST_ACCOUNT, { user_id: owner.id }));
  expect([types(naming), types(ofAll), types(ofUser)]).toEqual([['account.tested'], [], []]);
});

test('receivers that hang delay no messages of the store, and few of other users', async () => {
  const [first, second, third] = [await make.user(), await make.user(), await make.user()];
  const announceGame = async (owner: { id: number }) => {
    await app.get(Database).execute([bind(TEST_GAME, { game_id: (await make.game({ owner })).id })]);
    app.get(Events).announced();
  };
  const events = ['game.tested'];
  const store = await receiver({ events });
  const hanging: ServerResponse[] = [];
  const hang: Responding = (res) => hanging.push(res);
  const ofFirst = [];
  for (let i = 0; i < 10; i++) ofFirst.push(await receiver({ events, user_id: first.id, game_id: 0 }, hang));
  const ofSecond = await receiver({ events, user_id: second.id, game_id: 0 }, hang);
  const ofThird = await receiver({ events, user_id: third.id, game_id: 0 });

  await announceGame(first);
  await until(() => hanging.length > 0);
  await announceGame(second);
  await ofSecond.received(1);
  await announceGame(third);
  await store.received(3);
  expect(await ofThird.waiting).toMatchObject([{ attempts: 0 }]);
  expect(hanging).toHaveLength(2);

  hanging[1]!.end();
  await ofThird.received(1);
  expect(ofFirst.flatMap(({ messages }) => messages)).toHaveLength(1);
  hanging[0]!.end();
  await until(() => hanging.length > 2);
});

test('a transaction that fails announces nothing', async () => {
  const { owner } = await actors();
  const store = await receiver({ events: ['account.tested'] });
  const failing = app.get(Database).transaction(async (db) => {
    await app.get(Database).execute([bind(TEST_ACCOUNT, { user_id: owner.id })], db);
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  await announce(bind(TEST_ACCOUNT, { user_id: owner.id }));
  expect(types(store)).toEqual(['account.tested']);
});

test('two event types with one name keep the service from starting', async () => {
  const twice = EventsModule.forFeature([{ ...GAME_TESTED, name: 'purchase.completed' }]);
  await expect(openApp({}, { imports: [twice] })).rejects.toThrow(
    'Two event types are named purchase.completed.',
  );
});

test('the guide says when each event is sent', () => {
  const guide = readFileSync('docs/guides/webhooks.md', 'utf8');
  const rows = [...guide.matchAll(/^\| `(\w+\.\w+)` +\| (.+?) +\|$/gm)].map(([, name, text]) => [name, text]);
  const declared = theApp()
    .get(Events)
    .all.map(({ name, sent_when }) => [name, sent_when]);
  expect(rows.slice(0, declared.length)).toEqual(declared);
});
