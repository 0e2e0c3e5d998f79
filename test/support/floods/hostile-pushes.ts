import { randomBytes } from 'node:crypto';
import { HOSTILE_BUILDS } from '../hostile-builds';
import { formMessage, type Message } from '../world/message';
import { ALICE, ATTACKER } from '../world/world';
import { UploadTool } from '../upload-tool';
import type { Attack } from './attack';

const KEY = ATTACKER.key(ALICE);
const GAME = String(ATTACKER.base + 1);
const SESSIONS = 8;
const BLOCK = 64 * 1024;
/** The builds whose files take the longest to read. */
const SLOWEST = ['10 million entries', 'links that lead', '256 MB', 'bytes after its end'];

/** Parts out of order, overlapping and too large, sessions by the hundred, and builds that must be rejected. */
export async function hostilePushes(attack: Attack): Promise<string[]> {
  const tool = new UploadTool(attack.base, KEY);
  const builds: number[] = [];
  const paths: string[] = [];
  for (let i = 0; i < SESSIONS; i++) {
    const { build } = await tool.post<{ build: { id: number } }>('/wharf/builds', {
      target: GAME,
      channel: `flood-${i}`,
    });
    builds.push(build.id);
    paths.push(new URL((await tool.startFile(build.id, 'patch', Buffer.alloc(0))).location).pathname);
  }
  const files = HOSTILE_BUILDS.filter(([name]) => SLOWEST.some((one) => name.includes(one))).map(
    ([, create]) => create(),
  );
  const block = randomBytes(BLOCK);
  const part = (): Message => {
    const start = attack.random(8) * 1000;
    const range = attack.pick([
      `bytes ${start}-${start + BLOCK - 1}/*`,
      `bytes ${2 ** 40}-${2 ** 40 + BLOCK - 1}/*`,
      `bytes 0-${BLOCK - 1}/9999999999999`,
      'bytes */*',
    ]);
    const body = range === 'bytes */*' ? Buffer.alloc(0) : block;
    return { method: 'PUT', path: attack.pick(paths), headers: [['Content-Range', range]], body };
  };
  const authorization: [string, string][] = [['Authorization', KEY]];
  const start = (): Message =>
    formMessage(
      '/wharf/builds',
      { target: GAME, channel: `flood-${attack.random(SESSIONS)}` },
      authorization,
    );
  const file = (): Message =>
    formMessage(
      `/wharf/builds/${attack.pick(builds)}/files`,
      { type: attack.pick(['patch', 'signature']), sub_type: 'default', upload_type: 'deferred_resumable' },
      authorization,
    );
  const completed: number[] = [];
  const pushed = async () => {
    while (!attack.isOver) {
      // A push can be rejected like any other request, and is then tried again.
      const build = await tool.push(GAME, 'hostile', attack.pick(files)).catch(() => undefined);
      if (build) completed.push(build.id);
    }
  };
  attack.begin();
  await Promise.all([attack.clientsThat(60, () => attack.pick([part, part, part, start, file])()), pushed()]);
  const { rows } = await attack.sql.query(
    `SELECT FROM builds WHERE id = ANY ($1::bigint[]) AND state = 'completed'`,
    [completed],
  );
  await attack.sql.query(`UPDATE builds SET expires_at = now() WHERE game_id = $1 AND expires_at > now()`, [
    GAME,
  ]);
  return rows.length > 0 ? [`${rows.length} hostile builds are completed`] : [];
}
