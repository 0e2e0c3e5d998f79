import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Statement } from '../../src/platform/database/statement';

export const FILE = join(__dirname, '..', 'contract', 'statements.sql');

export interface DeclaredStatement extends Statement {
  file: string;
}

const STATEMENT =
  /^-- (\w+): ([\w./-]+)(?:, (small|long))?(?:, concurrency key: (.+?))?(?:\n-- parameters: (.+))?\n([^]*?);\n(?=\n--|$(?![^]))/gm;

/** The statements of statements.sql. */
export const declared = (): DeclaredStatement[] =>
  Array.from(
    readFileSync(FILE, 'utf8').matchAll(STATEMENT),
    ([, name, file, group = 'own connection', concurrencyKey, parameters, text]) =>
      ({
        name,
        file,
        group,
        concurrencyKey,
        parameters: parameters?.split(', ') ?? [],
        text,
      }) as DeclaredStatement,
  );

export function statementNamed(name: string): Statement {
  const found = declared().find((one) => one.name === name);
  if (!found) throw new Error(`statements.sql has no statement ${name}`);
  return found;
}
