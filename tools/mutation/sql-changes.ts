import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** One change of one place in a statement. */
export interface SqlChange {
  file: string;
  start: number;
  from: string;
  to: string;
}

const VALUE = String.raw`(?!CASE|EXISTS|NOT\b)(?:\$\{[^{}]*\}|'[^']*'|[\w.$:]+(?:\([^()]*\))?)`;
const OPERATOR = '(?:=|<>|<=?|>=?)';
const CONDITION = String.raw`(?:NOT )?${VALUE}(?: ${OPERATOR} (?:(?:ANY|ALL) ?\([^()]*\)|${VALUE})| IS (?:NOT )?NULL)?`;
const END = String.raw`(?=\s|\)|['\x60]|$)(?!\s+(?:${OPERATOR}|\(|[+*/-]|IS|IN|BETWEEN)\s)(?! \()`;

/** Taken away; in its place AND is OR where a condition has a parenthesis within. */
const CONDITIONS: [RegExp, string][] = [
  [new RegExp(String.raw` AND ${CONDITION}${END}`, 'g'), ''],
  [/ AND\b/g, ' OR'],
  [new RegExp(String.raw`\bWHERE ${CONDITION} AND\b`, 'g'), 'WHERE'],
];
const OTHERS: [RegExp, string][] = [
  [/\bOR\b/g, 'AND'],
  [/\bNOT (?=\$\{|\(|\w+\.)/g, ''],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/\bIS NULL\b/g, 'IS NOT NULL'],
  [/ < /g, ' <= '],
  [/ > /g, ' >= '],
  [/ <= /g, ' < '],
  [/ >= /g, ' > '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ DESC\b/g, ''],
  [/, [\w.]+ DESC\b/g, ''],
  [/\bORDER BY (?!\w+\.?\w* DESC)(?=[\w.]+)/g, 'ORDER BY -'],
  [/\bLEFT JOIN\b/g, 'JOIN'],
  [/\bmax\(/g, 'min('],
  [/\bmin\(/g, 'max('],
  [/\blower\(/g, '('],
  [/\bSELECT DISTINCT\b/g, 'SELECT'],
  [/\bUNION ALL\b/g, 'EXCEPT ALL'],
  [/ FOR NO KEY UPDATE\b/g, ''],
];

const SQL =
  /\b(SELECT|UPDATE|DELETE FROM|INSERT INTO|WHERE|EXISTS|ORDER BY|UNION ALL)\b|^[\w.$]+ (AND|=|<>|DESC)/;

/** All changes of the statements in a file. */
export function changesIn(file: string): SqlChange[] {
  const changes: SqlChange[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateLiteral(node) || ts.isStringLiteral(node)) {
      const text = node.getText();
      if (SQL.test(text.slice(1)))
        for (const change of changesOf(text))
          changes.push({ ...change, file, start: node.getStart() + change.start });
    } else ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true));
  return changes.sort((a, b) => a.start - b.start);
}

function changesOf(text: string): Omit<SqlChange, 'file'>[] {
  const found = ([pattern, to]: [RegExp, string]) =>
    [...text.matchAll(pattern)]
      .map(({ 0: from, index }) => ({ start: index, from, to }))
      .filter(({ start }) => !isComment(text, start));
  const conditions = new Map(
    CONDITIONS.toReversed()
      .flatMap(found)
      .map((change) => [change.start, change]),
  );
  return [...conditions.values(), ...OTHERS.flatMap(found)];
}

const isComment = (text: string, index: number) =>
  text.slice(text.lastIndexOf('\n', index) + 1, index).includes('--');
