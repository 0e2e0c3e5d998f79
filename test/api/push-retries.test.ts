import { baseUrl } from '../support/app';
import { useFiles } from '../support/files';
import { send } from '../support/http';
import { actors, make } from '../support/make';
import { UploadTool } from '../support/upload-tool';

// One write at a time: a write that waits for another one inside of it fails.
useFiles({ DATABASE_POOL_SIZE: '2' });

test('every request of a push can be repeated with an Idempotency-Key', async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  let keys = 0;
  const post = async <Body>(path: string, form: Record<string, string>): Promise<Body> => {
    const headers = {
      authorization: `Bearer ${owner.key!}`,
      'content-type': 'application/x-www-form-urlencoded',
      'idempotency-key': `request ${keys++}`,
    };
    const body = new URLSearchParams(form).toString();
    const first = await send('POST', path, { headers, body });
    expect(first.status).toBe(200);
    const again = await send('POST', path, { headers, body });
    expect(again).toMatchObject({ status: 200, body: first.body });
    return first.body as Body;
  };
  const tool = new UploadTool(baseUrl(), owner.key!);
  const target = `${owner.username}/${game.slug}`;
  const { build } = await post<{ build: { id: number } }>('/wharf/builds', {
    target,
    channel: 'linux',
    hidden: 'true',
  });
  const path = `/wharf/builds/${build.id}`;
  const created = { type: 'signature', sub_type: 'default', upload_type: 'deferred_resumable' };
  const { file } = await post<{ file: { id: number; upload_url: string } }>(`${path}/files`, created);
  await tool.put(file.upload_url, 'bytes 0-3/4', Buffer.from('part'));
  await post(`${path}/files/${file.id}`, { size: '4' });
  await post(`${path}/events`, { type: 'log', message: 'sent' });
  await post(`${path}/publish`, {});
  await post(`${path}/failures`, { message: 'canceled' });
});
