// The texts in the code that people read: strings of several words (help, API descriptions, pages, messages), titles of
// tests, and comments.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const SQL =
  /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|FROM|WHERE|AND|OR|JOIN|LEFT JOIN|CASE|UNION|SET)\b|::\w|\w+\.\w+ (=|IS) |\(SELECT /;
const isQuoted = (node) =>
  ts.isStringLiteralLike(node) ||
  ts.isTemplateHead(node) ||
  ts.isTemplateMiddle(node) ||
  ts.isTemplateTail(node);

/** A part of a template is SQL if the template begins with SQL. */
const isSql = (node) =>
  SQL.test(node.text) || (ts.isTemplateSpan(node.parent) && SQL.test(node.parent.parent.head.text));

const isTitle = (node) =>
  ts.isCallExpression(node.parent) &&
  node.parent.arguments[0] === node &&
  /^(describe|it|test)\b/.test(node.parent.expression.getText());

/** [line, text] of each string of several words and of each comment, without `code`. In tests and tools, titles only. */
export function findTexts(file) {
  const isChecked = file.startsWith('src') ? isQuoted : (node) => isQuoted(node) && isTitle(node);
  const source = readFileSync(file, 'utf8');
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const found = [];
  const literals = [];
  const visit = (node) => {
    if (isQuoted(node) || ts.isRegularExpressionLiteral(node)) literals.push(node);
    if (isChecked(node) && /[a-z],? [a-z]/i.test(node.text) && !isSql(node))
      found.push([node.getStart(), node.text.replace(/<[^>]*>/g, ' ')]);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  for (const { index, 0: text } of source.matchAll(/\/\*[^]*?\*\/|\/\/ .*$/gm))
    if (!literals.some((one) => one.getStart() <= index && index < one.end)) found.push([index, text]);
  return found.map(([at, text]) => [
    source.slice(0, at).split('\n').length,
    text.replace(/`[^`\n]*`|\$\{[^}]*\}|\b(src|test|tools|docs)\/\S+/g, ''),
  ]);
}

const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    // The texts of the demo store are data, and terms.mjs contains the terms.
    .filter((name) => /\.(ts|js|mjs)$/.test(name) && !/demo-words|terms\.mjs|node_modules/.test(name))
    .map((name) => join(folder, name));

export const sourceFiles = () => ['src', 'test', 'tools'].flatMap(filesIn).sort();

export const configurationFiles = () => [
  ...[
    'Dockerfile',
    '.env.example',
    'jest.config.js',
    'jest.pgbouncer.config.js',
    'jest.system.config.js',
    'jest.load.config.js',
  ],
  ...readdirSync('deploy', { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort(),
];

/** The comments of a configuration file, each in its line. */
export const readComments = (file) =>
  readFileSync(file, 'utf8').replace(/^.*$/gm, (line) => /(?:^|\s)(?:#|--|\/\/) (.*)$/.exec(line)?.[1] ?? '');
