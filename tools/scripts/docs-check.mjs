// Finds what a reader would stumble over: long sentences and paragraphs, hard words, dead links, commands that no test runs,
// and figures without a source. A person judges what it finds.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import readability from 'text-readability';

const LONGEST_SENTENCE = 35;
const LONGEST_PARAGRAPH = 90;
const HIGHEST_GRADE = 10;
// A grade of a few sentences says nothing.
const WORDS_TO_GRADE = 100;
// Its words are those of the requirements that it answers.
const TABLE_OF_TERMS = 'docs/explanation/security-asvs.md';

const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'].filter((page) => existsSync(page)),
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
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
const anchorsOf = (page) =>
  new Set(
    [...withoutCode(readFileSync(page, 'utf8')).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading)),
  );

/** Words as a reader hears them: a piece of code or an address counts as one. */
const spoken = (text) =>
  text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/`[^`]*`/g, 'code')
    .replace(/https?:\/\/\S+/g, 'link')
    .replace(/[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}/g, '');
const wordsOf = (text) => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
const sentencesOf = (text) => text.split(/(?<=[.!?:][)"”]?)\s+(?=[\p{Lu}\p{N}`"“(*[])/u);

/** Paragraphs, items of lists and cells of tables, each with the line where it begins. */
function blocksOf(text) {
  const blocks = [];
  let open;
  withoutCode(text)
    .split('\n')
    .forEach((line, i) => {
      if (/^\s*$|^#|^ {4}|^\s*<|^\|?[\s|:-]+$/.test(line)) return void (open = undefined);
      if (line.startsWith('|')) {
        open = undefined;
        for (const cell of line.split('|')) blocks.push({ line: i + 1, text: cell.trim(), cell: true });
      } else if (!open || /^\s*([-*]|\d+\.)\s/.test(line)) {
        open = { line: i + 1, text: line.replace(/^\s*([-*>]|\d+\.)\s+/, '') };
        blocks.push(open);
      } else open.text += ` ${line.trim()}`;
    });
  return blocks;
}

const MEASURED = /\d[\d,.]*\s?(ms|µs|MB|times|times as|requests a second|a second)\b/;
const SOURCE = /\]\([^)]*\)|`(npm run|test\/|tools\/|npx|src\/)[^`]*`/;
/** Pages whose figures were measured; elsewhere a figure is a limit, which the code sets. */
const isMeasured = (page) => /README|performance|scaling|decisions\//.test(page);

const problems = [];
for (const page of pages.filter((one) => chosen.length === 0 || chosen.includes(one))) {
  const text = readFileSync(page, 'utf8');
  const say = (line, what) => problems.push(`${page}:${line}: ${what}`);
  const prose = [];

  for (const { line, text: block, cell } of blocksOf(text)) {
    const plain = spoken(block);
    if (wordsOf(plain).length > LONGEST_PARAGRAPH) say(line, `a paragraph of ${wordsOf(plain).length} words`);
    // A cell may be a list, with semicolons between.
    for (const sentence of cell ? sentencesOf(plain).flatMap((one) => one.split('; ')) : sentencesOf(plain)) {
      const { length } = wordsOf(sentence);
      if (length > LONGEST_SENTENCE) say(line, `a sentence of ${length} words: ${sentence.slice(0, 60)}...`);
    }
    if (!cell) prose.push(/[.!?:]$/.test(plain) ? plain : `${plain}.`);
  }
  const read = prose.join('\n');
  if (wordsOf(read).length >= WORDS_TO_GRADE && page !== TABLE_OF_TERMS) {
    const grade = readability.fleschKincaidGrade(read);
    if (grade > HIGHEST_GRADE) say(1, `reading grade ${grade}`);
  }

  for (const match of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
    const [path, anchor] = match[1].split('#');
    const line = text.slice(0, match.index).split('\n').length;
    if (/^[a-z]+:/.test(path)) continue;
    const target = path === '' ? page : normalize(join(dirname(page), path));
    if (!existsSync(target)) say(line, `a dead link: ${match[1]}`);
    else if (anchor && target.endsWith('.md') && !anchorsOf(target).has(anchor))
      say(line, `no such heading: ${match[1]}`);
  }

  // `<!-- run by test/x.test.ts -->` before a block says who runs it; that test must name the page.
  for (const match of text.matchAll(/<!-- run by (\S+) -->/g)) {
    const line = text.slice(0, match.index).split('\n').length;
    if (!existsSync(match[1])) say(line, `no such test: ${match[1]}`);
    else if (!readFileSync(match[1], 'utf8').includes(page.split('/').at(-1)))
      say(line, `${match[1]} does not read this page`);
  }

  if (isMeasured(page)) {
    let line = 1;
    // A record of a decision is one page with one section of figures.
    for (const section of page.includes('decisions/') ? [text] : text.split(/^(?=## )/m)) {
      if (MEASURED.test(withoutCode(section)) && !SOURCE.test(section)) say(line, 'figures without a source');
      line += section.split('\n').length - 1;
    }
  }
}

for (const problem of problems) console.log(problem);
console.log(`${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
