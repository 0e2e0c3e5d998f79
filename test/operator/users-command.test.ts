import { PassThrough, Readable } from 'node:stream';
import { Command } from 'commander';
import { addCommands } from '../../src/commands/program';
import { Browser, signInBrowser } from '../support/browser';
import { theApp, useStore } from '../support/app';
import { make } from '../support/make';

useStore({ RATE_LIMIT: 'off' });

/** Runs the command on the services of this file with this standard input. */
async function setPassword(name: string, input: string): Promise<string> {
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), ['users']);
  const { stdin } = process;
  const said: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line: string) => void said.push(line));
  Object.defineProperty(process, 'stdin', { value: Readable.from([input]), configurable: true });
  try {
    await program.parseAsync(['users', 'set-password', name], { from: 'user' });
    return said.join('\n');
  } catch (error) {
    return (error as Error).message;
  } finally {
    Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
    log.mockRestore();
  }
}

test('sets the password, which then works, and ends all sessions', async () => {
  const user = await make.user({ username: 'Bosun' });
  const open = await signInBrowser(user);
  expect(await setPassword('bosun', 'a new password\nand a second line\n')).toBe(
    'The password of bosun is set.',
  );
  expect((await open.get('/user/settings/api-keys')).location).toContain('/login');
  expect((await new Browser().signIn('Bosun', 'a new password')).status).toBe(303);
  expect((await new Browser().signIn('Bosun')).status).toBe(403);
});

/** Runs the command in a terminal in which these keys are pressed. */
async function typePassword(name: string, ...lines: string[]): Promise<string> {
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), ['users']);
  const { stdin } = process;
  let echoes = true;
  const setRawMode = (isRaw: boolean) => {
    echoes = !isRaw;
    return terminal;
  };
  const terminal = Object.assign(new PassThrough(), { isTTY: true, setRawMode });
  const said: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line: string) => void said.push(line));
  const questions = jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said.push(String(text));
    // Key by key, as a terminal sends them.
    if (String(text).endsWith(': '))
      for (const key of lines.shift()!.match(/\u001b\[.|./gs)!) {
        if (echoes) said.push(key);
        terminal.write(key);
      }
    return true;
  });
  Object.defineProperty(process, 'stdin', { value: terminal, configurable: true });
  try {
    await program.parseAsync(['users', 'set-password', name], { from: 'user' });
    return said.join('');
  } catch (error) {
    return (error as Error).message;
  } finally {
    Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
    log.mockRestore();
    questions.mockRestore();
  }
}

test('prompts twice in a terminal without echo, with support for arrow keys and backspace', async () => {
  const { username } = await make.user();
  const [left, backspace] = ['\u001b[D', '\u007f'];
  expect(await typePassword(username, `open-sezameX${backspace}${left}!\r`, 'open-sezam!e\r')).toBe(
    `New password: \nRepeat the password: \nThe password of ${username} is set.`,
  );
  expect((await new Browser().signIn(username, 'open-sezam!e')).status).toBe(303);
});

test('changes nothing after Ctrl-C in a terminal', async () => {
  const { username } = await make.user();
  expect(await typePassword(username, 'a new pass\u0003')).toBe('Nothing was changed.');
  expect(await typePassword(username, 'a new password\r', 'another password\r')).toBe(
    "The passwords don't match.",
  );
});

test.each([
  ['too short', 'seven77\n', 'The password must have at least 8 characters.'],
  ['too long', `${'x'.repeat(1001)}\n`, 'The password must have at most 1000 characters.'],
  ['missing', '', 'Standard input contains no password.'],
])('rejects a password that is %s', async (_, input, problem) => {
  const { username } = await make.user();
  expect(await setPassword(username, input)).toBe(problem);
});

test('reports a missing user', async () => {
  expect(await setPassword('nobody', 'a new password\n')).toBe("User nobody doesn't exist.");
});

describe('users link', () => {
  async function link(...words: string[]): Promise<string> {
    const program = new Command().exitOverride();
    program.configureOutput({ writeErr: () => undefined });
    addCommands(program, (work) => work(theApp(), new AbortController().signal), ['users']);
    const said: string[] = [];
    const log = jest.spyOn(console, 'log').mockImplementation((line: string) => void said.push(line));
    try {
      await program.parseAsync(['users', 'link', ...words], { from: 'user' });
      return said.join('\n');
    } catch (error) {
      return (error as Error).message;
    } finally {
      log.mockRestore();
    }
  }

  test('prints a link that sets the password, or signs in', async () => {
    await make.user({ username: 'Purser' });
    const printed = /^http:\/\/\S+?(\/links\/[\w-]{43})\nIt expires at \S+Z\.$/;
    const browser = new Browser();
    await browser.get(printed.exec(await link('purser'))![1]!);
    expect(browser.words).toContain('Set a new password For the account Purser');
    const path = printed.exec(await link('purser', '--purpose', 'sign_in'))![1]!;
    await browser.get(path);
    await browser.submit(path);
    expect(browser.page.location).toBe('/user/settings');
  });

  test('rejects an unknown user or purpose', async () => {
    expect(await link('nobody')).toBe("User nobody doesn't exist.");
    expect(await link('purser', '--purpose', 'sign_up')).toContain('Use set_password or sign_in.');
  });
});
