// The texts in the code that people read: strings of several words (help, API descriptions, pages, messages) and
// comments.
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

/** [line, text] of each string of several words and of each comment, without `code`. */
export function textsOf(file) {
  const source = readFileSync(file, 'utf8');
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const found = [];
  const literals = [];
  const visit = (node) => {
    if (isQuoted(node) || ts.isRegularExpressionLiteral(node)) literals.push(node);
    if (isQuoted(node) && /[a-z],? [a-z]/i.test(node.text) && !isSql(node))
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

export const sourceFiles = () =>
  readdirSync('src', { recursive: true, encoding: 'utf8' })
    // The texts of the demo store are data.
    .filter((name) => /\.(ts|js)$/.test(name) && !name.endsWith('demo-words.ts'))
    .map((name) => join('src', name))
    .sort();
