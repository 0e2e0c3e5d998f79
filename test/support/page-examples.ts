import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runIf } from './run-if';
import { HANGING } from './time';

export interface Example {
  language: string;
  code: string;
  /** The output documented on the page. */
  prints: string | undefined;
  /** The section of the page. */
  heading: string;
}

type Command = [string, ...string[]];

// How to run the examples of a language. The code is the last argument, or in a file named by it.
const PROGRAMS: Record<string, { needs: Command; run: Command; file?: string }> = {
  sh: { needs: ['curl', '--version'], run: ['sh', '-c'] },
  python: { needs: ['python3', '--version'], run: ['python3', '-c'] },
  js: { needs: ['node', '--version'], run: ['node', '--input-type=module', '-e'] },
  go: { needs: ['go', 'version'], run: ['go', 'run'], file: 'main.go' },
};

/** The examples of a page in docs/, in order. */
export function readExamples(page: string): Example[] {
  const text = readFileSync(join(__dirname, '..', '..', 'docs', page), 'utf8');
  return text.split(/^#{2,3} /m).flatMap((section) =>
    [...section.matchAll(/^```(\w+)\n([^]*?)^```\n(?:\n```text\n([^]*?)^```$)?/gm)]
      .map(([, language, code, prints]) => ({
        language: language!,
        code: code!,
        prints,
        heading: section.slice(0, section.indexOf('\n')),
      }))
      .filter(({ language }) => !['text', 'mermaid'].includes(language)),
  );
}

export const isInstalled = ([program, ...args]: Command) => spawnSync(program, args).status === 0;

export const withCurl = runIf(isInstalled(['curl', '--version']), 'curl is not installed');

/** Whether the language is installed. */
export const isRunnable = (language: string) => isInstalled(PROGRAMS[language]!.needs);

/** The examples whose output the page states, with a runner that skips those whose language isn't installed. */
export const runnable = (examples: Example[]) =>
  examples
    .filter(({ language, prints }) => prints !== undefined && language in PROGRAMS)
    .map((example) => {
      const { needs } = PROGRAMS[example.language]!;
      return { example, when: runIf(isInstalled(needs), `${needs[0]} is not installed`) };
    });

export async function run(
  { language, code }: Pick<Example, 'language' | 'code'>,
  env: Record<string, string>,
) {
  const {
    run: [program, ...args],
    file,
  } = PROGRAMS[language]!;
  const options = { env: { ...process.env, PYTHONUTF8: '1', ...env }, timeout: HANGING };
  if (!file) return promisify(execFile)(program, [...args, code], options);
  const folder = mkdtempSync(join(tmpdir(), 'gamewharf-example-'));
  try {
    writeFileSync(join(folder, file), code);
    return await promisify(execFile)(program, [...args, file], { ...options, cwd: folder });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Compares the output of the example with that on the page. */
export async function expectAsPrinted(example: Example, env: Record<string, string>): Promise<void> {
  const { stdout, stderr } = await run(example, env);
  expect(stderr).toBe('');
  expect(stdout.trimEnd()).toBe(example.prints!.trimEnd());
}
