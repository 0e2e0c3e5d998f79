import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { temporaryFolder } from '../support/temporary';
import { until } from '../support/time';

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
  // With this file of `npm run types`, tsc checks only what an edit changes.
  const checked = join('dist', 'tsconfig.tsbuildinfo');
  if (existsSync(join(ROOT, checked))) {
    mkdirSync(join(copy, 'dist'));
    cpSync(join(ROOT, checked), join(copy, checked));
  }
});
afterAll(async () => {
  await Promise.all([...running].map(end));
  rmSync(copy, { recursive: true, force: true });
});

interface Step {
  /** The file named in the text before the block. */
  file: string;
  language: string;
  text: string;
}

const readPage = (name: string) => readFileSync(join(ROOT, 'docs', 'contributing', name), 'utf8');

/** The blocks of a walkthrough: whole files (ts), changes to files (diff) and commands (sh). */
function stepsIn(section: string): Step[] {
  let file = '';
  return [...section.matchAll(/`([^`\n]+)`(?: \(new\))?:\n|^```(\w+)\n([^]*?)^```$/gm)].flatMap(
    ([, named, language, text]) => {
      if (named !== undefined) file = named;
      return language === undefined ? [] : [{ file, language, text: text! }];
    },
  );
}

/** Column widths don't count, because other changes align a table differently. */
const withoutWidths = (line: string) => line.replace(/(?<=\S) +/g, ' ');

/** Context and removed lines must occur exactly once, in this order; added lines replace them. */
function changed(text: string, { file, text: diff }: Step): string {
  const edits = diff.split('\n').slice(0, -1);
  const before = edits.filter((line) => !line.startsWith('+')).map((line) => withoutWidths(line.slice(1)));
  const lines = text.split('\n');
  const starts = lines.flatMap((_, i) =>
    before.every((line, n) => withoutWidths(lines[i + n] ?? '') === line) ? [i] : [],
  );
  if (starts.length !== 1)
    throw new Error(`${file} has this ${starts.length} times, not once:\n${before.join('\n')}`);
  const kept = lines.splice(starts[0]!, before.length);
  const after = edits.flatMap((edit) => {
    if (edit.startsWith('+')) return [edit.slice(1)];
    const line = kept.shift()!;
    return edit.startsWith('-') ? [] : [line];
  });
  return lines.toSpliced(starts[0]!, 0, ...after).join('\n');
}

const running = new Set<ChildProcess>();

/** Runs a command as a developer would, outside this jest run, in a process group that a timeout can end. */
async function run(command: string): Promise<void> {
  const outer = /^(TEST_|JEST_|NODE_ENV$|npm_)/;
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !outer.test(name)));
  const child = spawn('sh', ['-ec', command], { cwd: copy, env: { ...env, TMPDIR: copy }, detached: true });
  running.add(child);
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  running.delete(child);
  if (code !== 0) throw new Error(`${command}\n${printed}`);
}

/** The command's own jest stops its database server and removes its files. */
async function end({ pid }: ChildProcess): Promise<void> {
  const group = -pid!;
  const signal = (name: NodeJS.Signals | 0) => {
    try {
      return process.kill(group, name);
    } catch {
      return false;
    }
  };
  if (signal('SIGTERM')) await until(() => !signal(0)).catch(() => signal('SIGKILL'));
}

async function follow(steps: Step[]): Promise<void> {
  const files = new Set(steps.flatMap(({ file, language }) => (language === 'sh' ? [] : [file])));
  for (const step of steps) {
    if (step.language === 'sh') await run(step.text);
    else if (step.language === 'diff') {
      const path = join(copy, step.file);
      writeFileSync(path, changed(readFileSync(path, 'utf8'), step));
    } else {
      mkdirSync(dirname(join(copy, step.file)), { recursive: true });
      writeFileSync(join(copy, step.file), step.text);
    }
  }
  await run(
    `npx prettier --check src/platform/openapi/assets/example-responses.json ${[...files].join(' ')}`,
  );
}

const FIELD = readPage('common-changes.md')
  .split(/^(?=## )/m)
  .find((section) => section.startsWith('## Add a field to a game\n'))!;

test('a new field needs the number of edits that the page states', () => {
  const edits = stepsIn(FIELD).filter(
    ({ file, language }) => language !== 'sh' && /^(src|migrations)\//.test(file),
  );
  const files = new Set(edits.map(({ file }) => file));
  expect(FIELD).toContain(`takes ${edits.length} edits by hand in ${files.size} files`);
});

test('a new field works after the edits of its walkthrough', async () => {
  await follow(stepsIn(FIELD));
});

const RESOURCE = readPage('add-a-resource.md');

test('the edits of a new resource can be made after those of another, and with other column widths', () => {
  const files = new Map<string, string>();
  const edit = (step: Step) =>
    files.set(step.file, changed(files.get(step.file) ?? readFileSync(join(ROOT, step.file), 'utf8'), step));
  const diffs = stepsIn(RESOURCE).filter(({ language }) => language === 'diff');
  expect(diffs.length).toBeGreaterThan(3);
  for (const { text, ...step } of diffs)
    edit({ ...step, text: text.replaceAll('comments', 'reviews').replaceAll('Comments', 'Reviews') });
  for (const [file, text] of files) files.set(file, text.replace(/(?<=\S)  +/g, ' '.repeat(60)));
  diffs.forEach(edit);
  for (const text of files.values())
    for (const name of [/\bcomments\b/i, /\breviews\b/i]) expect(text).toMatch(name);
});

test('a resource of the Nest CLI passes the checks after the edits of its page', async () => {
  // A second resource, which has no routes.
  const steps = stepsIn(RESOURCE).map((step) => ({
    ...step,
    text: step.text.replace(
      /^\+src\/comments\/.*$/gm,
      (line) => `${line}\n${line.replaceAll('comments', 'notes')}`,
    ),
  }));
  expect(steps.length).toBeGreaterThan(8);
  // No step edits these; they are checked together with the files of the page.
  await run('npx nest g resource notes --type rest --crud false');
  for (const schematic of ['guard', 'interceptor', 'middleware', 'pipe'])
    await run(`npx nest g ${schematic} notes`);
  await run('npx prettier --write src/notes');
  // One of its commands is jest, with the tests that a resource can break.
  await follow(steps);
  await Promise.all(
    [
      'npx eslint src/notes src/comments src/app.module.ts test/api/comments.test.ts test/contract migrations',
      'npx prettier --check src/notes src/comments src/app.module.ts docs/reference migrations',
      'npm run types',
    ].map(run),
  );
});
