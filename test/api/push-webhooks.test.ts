import { WebhooksService } from '../../src/operator/webhooks/webhooks.service';
import { filesToPush, createTree } from '../support/pushed-builds';
import { type Actor } from '../support/actor';
import { baseUrl, theApp } from '../support/app';
import { useFiles } from '../support/files';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { UploadTool } from '../support/upload-tool';
import { closeReceivers, type Message, Receiver } from '../support/webhook-receiver';

useFiles();
afterEach(closeReceivers);

const EVENTS = ['build.completed', 'build.failed'];

/** Adds a webhook of the user, or of the store if there is none. */
async function subscribed(user_id?: number): Promise<Receiver> {
  const receiver = await Receiver.open();
  const { url } = receiver;
  const webhook = { url, events: EVENTS, game_id: null, user_id };
  Object.assign(receiver, await theApp().get(WebhooksService).add(webhook));
  return receiver;
}

test('the seller and the store receive each build that is completed or has failed', async () => {
  const { owner, developer }: Record<'owner' | 'developer', Actor> = await actors();
  const [game, other] = [await make.game({ owner }), await make.game({ owner: developer })];
  const [ofSeller, ofOther, ofStore] = [
    await subscribed(owner.id),
    await subscribed(developer.id),
    await subscribed(),
  ];
  const push = async (
    editor: Actor,
    { slug }: { slug: string },
    files: Parameters<UploadTool['push']>[2],
  ) => {
    const tool = new UploadTool(baseUrl(), editor.key!);
    const more = { user_version: '1.0', hidden: '' };
    const { id } = await tool.push(`${editor.username}/${slug}`, 'linux', files, more);
    await tool.processed(id);
    const [row] = await sql<{ created_at: string }>(
      `SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS created_at FROM builds WHERE id = $1`,
      [id],
    );
    return { id, channel_name: 'linux', user_version: '1.0', hidden: true, ...row };
  };
  const files = await filesToPush(createTree({ 'a.txt': Buffer.from('a') }));
  const completed = await push(owner, game, files);
  const failed = await push(owner, game, { ...files, signature: Buffer.from('none') });
  const ofDeveloper = await push(developer, other, files);

  const expected = [
    { type: 'build.completed', data: { ...completed, game_ids: [game.id], version: 1, error: null } },
    {
      type: 'build.failed',
      data: { ...failed, game_ids: [game.id], version: 2, error: "The file isn't a signature." },
    },
    { type: 'build.completed', data: { ...ofDeveloper, game_ids: [other.id], version: 1, error: null } },
  ];
  const received = async (receiver: Receiver, count: number) =>
    (await receiver.received(count))
      .toSorted((a, b) => a.data.id - b.data.id)
      .map(({ type, data, genuine }: Message) => ({ type, data, genuine }));
  const genuine = expected.map((message) => ({ ...message, genuine: true }));
  expect(await received(ofStore, 3)).toEqual(genuine);
  expect(await received(ofSeller, 2)).toEqual(genuine.slice(0, 2));
  expect(await received(ofOther, 1)).toEqual(genuine.slice(2));
});
