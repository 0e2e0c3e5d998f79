import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { rawPatch, rawSignature } from '../support/hostile-builds';
import { baseUrl, openApp } from '../support/app';
import { useFiles } from '../support/files';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { UploadTool } from '../support/upload-tool';

const { environment } = useFiles({ BUILD_WORKERS: '0' });

test('many pushes of one owner do not delay those of another', async () => {
  const push = async (owner: { key?: string }, game: { id: number }, channel: string) => {
    const tool = new UploadTool(baseUrl(), owner.key!);
    const files = { patch: rawPatch(), signature: rawSignature() };
    return (await tool.push(String(game.id), channel, files)).id;
  };
  const [busy, other] = [await make.user(), await make.user()];
  const games = [await make.game({ owner: busy }), await make.game({ owner: busy })];
  const many: number[] = [];
  for (const channel of ['a', 'b', 'c', 'd']) many.push(await push(busy, games[many.length % 2]!, channel));
  const one = await push(other, await make.game({ owner: other }), 'linux');
  const worker = await openApp({ ...environment, BUILD_WORKERS: '1' });
  const failed = () =>
    sql<{ build_id: number }>(`SELECT build_id FROM build_events WHERE type = 'failed' ORDER BY id`);
  await until(async () => (await failed()).length === 5);
  await gracefulStop(worker);
  expect((await failed()).map(({ build_id }) => Number(build_id))).toEqual([many[0], one, ...many.slice(1)]);
});
