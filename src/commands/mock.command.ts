/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the services */
import { Option } from 'commander';
import { environmentOfThisProcess, explain, watchParent } from '../platform/config/environment';
import { type Commands, integerParser } from './operator-command';
import type { MockOptions } from '../dev/mock/mock-server';

export const commands: Commands = {
  mock: (mock) => {
    mock
      .option('--port <PORT>', 'port; 0 for any free one', integerParser(0, 65_535, 'Use 0 to 65535.'), 3000)
      .option('--host <ADDRESS>', 'IP address to listen on', '127.0.0.1')
      .option('--seed <FILE>', 'records to start with and to reset to, as NDJSON')
      .option('--tls', 'serve https, with its own certificate authority')
      .addOption(
        new Option('--quirks <SET>', 'behavior that the live site does not document')
          .choices(['live', 'none'])
          .default('live'),
      )
      .addOption(new Option('--prepare <FOLDER>', 'create the data folder of an image, and end').hideHelp())
      .action(({ prepare, ...options }: MockOptions & { prepare?: string }) =>
        prepare === undefined ? runMock(options) : load().prepareTemplate(prepare),
      );
  },
};

const load = () => require('../dev/mock/mock-server') as typeof import('../dev/mock/mock-server');

/** Runs until a signal, or until the program that started it with an IPC channel ends. */
async function runMock(options: MockOptions): Promise<void> {
  const { MockServer } = load();
  const server = new MockServer();
  let stopping: Promise<void> | undefined;
  const stop = (code: number) => (stopping ??= server.stop().finally(() => process.exit(code)));
  // A second signal waits for the first: after Ctrl-C, npm sends one more.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0));
  process.once('disconnect', () => void stop(0));
  const env = environmentOfThisProcess();
  // The shell of another script can start a mock for the next script, and end before it.
  if (['npx', 'gamewharf'].includes(env.npm_lifecycle_event ?? '')) watchParent(() => void stop(0));
  try {
    console.log(JSON.stringify(await server.start(options, env)));
  } catch (error) {
    if (stopping) return;
    console.error(explain(error));
    await stop(1);
  }
}
