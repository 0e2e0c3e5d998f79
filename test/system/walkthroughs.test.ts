import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/temporary';

const ROOT = resolve(__dirname, '..', '..');
const LEFT_OUT = ['node_modules', 'dist', 'coverage', '.git', '.data', '.bench'];

let copy: string;

beforeAll(async () => {
  copy = await temporaryFolder('gamewharf-walkthroughs-');
  cpSync(ROOT, copy, {
    recursive: true,
    filter: (path) => dirname(path) !== ROOT || !LEFT_OUT.includes(basename(path)),
  });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

interface Step {
  /** The file that the text before the block names. */
  file: string;
  language: string;
  text: string;
}

/** The blocks of a walkthrough: whole files (ts), changes of files (diff) and commands (sh). */
function stepsOf(heading: string): Step[] {
  const page = readFileSync(join(ROOT, 'docs', 'guides', 'change.md'), 'utf8');
  const section = page.split(/^## /m).find((one) => one.startsWith(heading))!;
  let file = '';
  return [...section.matchAll(/`([^`\n]+)`(?: \(new\))?:\n|^```(\w+)\n([^]*?)^```$/gm)].flatMap(
    ([, named, language, text]) => {
      if (named !== undefined) file = named;
      return language === undefined ? [] : [{ file, language, text: text! }];
    },
  );
}

/** Lines without a sign must stand in the file once, in this order, with those that go; those that come take their place. */
function change({ file, text }: Step): void {
  const lines = text.split('\n').slice(0, -1);
  const side = (sign: string) =>
    `\n${lines
      .filter((line) => !line.startsWith(sign))
      .map((line) => line.slice(1))
      .join('\n')}\n`;
  const [before, after] = [side('+'), side('-')];
  const parts = readFileSync(join(copy, file), 'utf8').split(before);
  if (parts.length !== 2) throw new Error(`${file} has this ${parts.length - 1} times, not once:${before}`);
  writeFileSync(join(copy, file), parts.join(after));
}

/** As somebody who develops runs it, and not as a part of this run of jest. */
async function run(command: string): Promise<void> {
  const outer = /^(TEST_|JEST_|NODE_ENV$|npm_)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !outer.test(name)));
  const options = { cwd: copy, env: { ...env, TMPDIR: copy }, maxBuffer: 2 ** 24 };
  await promisify(execFile)('sh', ['-ec', command], options).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(`${command}\n${stdout}\n${stderr}`);
    },
  );
}

async function follow(steps: Step[]): Promise<void> {
  const files = new Set(steps.flatMap(({ file, language }) => (language === 'sh' ? [] : [file])));
  for (const step of steps) {
    if (step.language === 'sh') await run(step.text);
    else if (step.language === 'diff') change(step);
    else {
      mkdirSync(dirname(join(copy, step.file)), { recursive: true });
      writeFileSync(join(copy, step.file), step.text);
    }
  }
  await run(`npx prettier --check src/platform/openapi/assets/demo-answers.json ${[...files].join(' ')}`);
}

const NUMBER = 'A number on a game';

test('a number on a game takes as many edits as the page says', () => {
  const edits = stepsOf(NUMBER).filter(
    ({ file, language }) => language !== 'sh' && /^(src|migrations)\//.test(file),
  );
  const files = new Set(edits.map(({ file }) => file));
  const page = readFileSync(join(ROOT, 'docs', 'guides', 'change.md'), 'utf8');
  expect(page).toContain(`takes ${edits.length} edits by hand in ${files.size} files`);
});

test('whoever follows the first walkthrough has a number on a game, and passes the tests', async () => {
  await follow(stepsOf(NUMBER));
}, 300_000);

test('whoever follows the second one after that has an endpoint, and passes the tests', async () => {
  await follow(stepsOf('A new endpoint'));
}, 300_000);
