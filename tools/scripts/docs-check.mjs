// Finds dead links, marked blocks that no test runs, invalid diagrams, figures without a source, and terms that
// docs/contributing/style.md replaces, also in comments of the code and of configuration files.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { readComments, configurationFiles, sourceFiles, findTexts } from './source-texts.mjs';
import { prose, termsIn } from './terms.mjs';

const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'].filter((page) => existsSync(page)),
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
  ...['RESULTS.md', 'RESULTS-selling.md'].map((name) => join('tools', 'bench', name)),
].sort();
const chosen = process.argv.slice(2).map((name) => relative('.', name));

const withoutCode = (text) => text.replace(/^(```+)[^]*?^\1$/gm, (block) => block.replace(/[^\n]/g, ''));
const slug = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[`*]|\[|\]\([^)]*\)/g, '')
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
const readAnchors = (page) =>
  new Set(
    [...withoutCode(readFileSync(page, 'utf8')).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading)),
  );

const PATH = /`((?:src|test|tools|docs|deploy|migrations)\/[\w./-]*\w)\/?`(?! \(new\))/g;
const MEASURED = /\d[\d,.]*\s?(ms|µs|MB|times|times as|requests a second|a second)\b/;
const SOURCE = /\]\([^)]*\)|`(npm (--prefix tools )?run|test\/|tools\/|npx|src\/)[^`]*`/;
/** Pages with measured figures; on other pages a figure is a limit defined by the code. */
const isMeasured = (page) => /README|performance|scaling|decisions\//.test(page);

// A package of tools/, which `npm ci --prefix tools` installs. CI has it.
const mermaid = await import('@probelabs/maid').catch(() => undefined);
const unchecked = new Set();
if (!mermaid && process.env.CI) throw new Error('diagrams: run npm ci --prefix tools');

const problems = [];
for (const page of pages.filter((one) => chosen.length === 0 || chosen.includes(one))) {
  const text = readFileSync(page, 'utf8');
  const say = (line, what) => problems.push(`${page}:${line}: ${what}`);

  for (const match of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
    const [path, anchor] = match[1].split('#');
    const line = text.slice(0, match.index).split('\n').length;
    if (/^[a-z]+:/.test(path)) continue;
    const target = path === '' ? page : normalize(join(dirname(page), path));
    if (!existsSync(target)) say(line, `a dead link: ${match[1]}`);
    else if (anchor && target.endsWith('.md') && !readAnchors(target).has(anchor))
      say(line, `no such heading: ${match[1]}`);
  }

  // `<!-- run by test/x.test.ts -->` before a block names the test that runs it; that test must name the page.
  for (const match of text.matchAll(/<!-- run by (\S+) -->/g)) {
    const line = text.slice(0, match.index).split('\n').length;
    if (!existsSync(match[1])) say(line, `no such test: ${match[1]}`);
    else if (!readFileSync(match[1], 'utf8').includes(page.split('/').at(-1)))
      say(line, `${match[1]} does not read this page`);
  }

  // The page about a new resource names files that do not exist yet, and other pages mark such files as new.
  if (!page.endsWith('/add-a-resource.md'))
    for (const match of withoutCode(text).matchAll(PATH))
      if (!existsSync(match[1]))
        say(text.slice(0, match.index).split('\n').length, `no such file: ${match[1]}`);

  for (const match of withoutCode(text).matchAll(/^\|(?: *:?-+:? *\|){5,}$/gm))
    say(
      text.slice(0, match.index).split('\n').length,
      'a table of more than four columns: merge some, or write a list',
    );

  for (const [line, found, instead] of termsIn(prose(text))) say(line, `“${found}”: use ${instead}`);

  for (const match of text.matchAll(/^```mermaid\n([^]*?)^```$/gm)) {
    const first = text.slice(0, match.index).split('\n').length;
    if (!mermaid) {
      unchecked.add(page);
      continue;
    }
    const { type, errors } = mermaid.validate(match[1]);
    if (type === 'unknown') say(first, 'a diagram that the parser does not know');
    for (const { line, message, severity } of errors)
      if (severity === 'error') say(first + line, `diagram: ${message}`);
  }

  if (isMeasured(page)) {
    let line = 1;
    // A decision record is one page with one section of figures.
    for (const section of page.includes('decisions/') ? [text] : text.split(/^(?=## )/m)) {
      if (MEASURED.test(withoutCode(section)) && !SOURCE.test(section)) say(line, 'figures without a source');
      line += section.split('\n').length - 1;
    }
  }
}

// Help texts, API descriptions, pages, messages and comments.
for (const file of sourceFiles().filter((one) => chosen.length === 0 || chosen.includes(one)))
  for (const [first, text] of findTexts(file))
    for (const [line, found, instead] of termsIn(text))
      problems.push(`${file}:${first + line - 1}: “${found}”: use ${instead}`);

for (const file of configurationFiles())
  for (const [line, found, instead] of termsIn(readComments(file)))
    problems.push(`${file}:${line}: “${found}”: use ${instead}`);

for (const problem of problems) console.log(problem);
if (unchecked.size > 0)
  console.log(`Diagrams not checked: run npm ci --prefix tools (${[...unchecked].join(', ')})`);
console.log(`${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
