import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Example {
  language: string;
  code: string;
  /** What the page says that it prints. */
  prints: string | undefined;
  /** The section of the page. */
  heading: string;
}

// How the examples of a language are run; `code` comes as the last argument.
const PROGRAMS: Record<string, { needs: [string, ...string[]]; run: [string, ...string[]] }> = {
  sh: { needs: ['curl', '--version'], run: ['sh', '-c'] },
  python: { needs: ['python3', '--version'], run: ['python3', '-c'] },
  js: { needs: ['node', '--version'], run: ['node', '--input-type=module', '-e'] },
};

/** The examples of a page in docs/, in their order. */
export function examplesOf(page: string): Example[] {
  const text = readFileSync(join(__dirname, '..', '..', 'docs', page), 'utf8');
  return text.split(/^## /m).flatMap((section) =>
    [...section.matchAll(/^```(\w+)\n([^]*?)^```\n(?:\n```text\n([^]*?)^```$)?/gm)]
      .map(([, language, code, prints]) => ({
        language: language!,
        code: code!,
        prints,
        heading: section.slice(0, section.indexOf('\n')),
      }))
      .filter(({ language }) => language !== 'text'),
  );
}

/** Those whose language is on this machine. */
export function runnable(examples: Example[]): Example[] {
  const isHere = ([program, ...args]: [string, ...string[]]) => spawnSync(program, args).status === 0;
  const missing = Object.keys(PROGRAMS).filter((language) => !isHere(PROGRAMS[language]!.needs));
  if (missing.length > 0)
    console.warn(`Not run, for lack of ${missing.map((one) => PROGRAMS[one]!.needs[0]).join(', ')}`);
  return examples.filter(({ language }) => language in PROGRAMS && !missing.includes(language));
}

export function run({ language, code }: Pick<Example, 'language' | 'code'>, env: Record<string, string>) {
  const [program, ...args] = PROGRAMS[language]!.run;
  return promisify(execFile)(program, [...args, code], {
    env: { ...process.env, PYTHONUTF8: '1', ...env },
    timeout: 15_000,
  });
}

/** Holds what the example prints against what the page says. */
export async function expectAsPrinted(example: Example, env: Record<string, string>): Promise<void> {
  const { stdout, stderr } = await run(example, env);
  expect(stderr).toBe('');
  expect(stdout.trimEnd()).toBe(example.prints!.trimEnd());
}
