import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isInstalled } from '../support/page-examples';
import { runIf } from '../support/run-if';
import { baseUrl } from '../support/app';
import { useFiles } from '../support/files';
import { actors, make } from '../support/make';
import { UploadTool } from '../support/upload-tool';

const { folder } = useFiles();

const withButler = runIf(isInstalled(['butler', '--version']), 'butler is not installed');

withButler.test('butler pushes two builds of a folder and lists their channel', async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  const target = `${owner.username}/${game.slug}`;
  const requests = new UploadTool(baseUrl(), owner.key!);
  const butler = async (...args: string[]) => {
    const env = { ...process.env, BUTLER_API_KEY: owner.key!, HOME: folder };
    const { stdout } = await promisify(execFile)('butler', ['--address', baseUrl(), ...args], { env });
    return stdout;
  };
  const build = join(folder, 'game');
  await mkdir(build);
  const ids: number[] = [];
  for (const version of ['1.0', '1.1']) {
    await writeFile(join(build, 'game.txt'), `Version ${version}`);
    await butler('push', build, `${target}:linux`, '--userversion', version);
    const { builds } = await requests.get<{ builds: { id: number }[] }>('/profile/builds');
    const { id } = builds[0]!;
    expect(ids).not.toContain(id);
    expect(await requests.processed(id)).toMatchObject({ state: 'completed', error: null });
    ids.push(id);
  }
  const status = await butler('status', target);
  expect(status).toContain('linux');
  expect(status).toContain('1.1');
});
