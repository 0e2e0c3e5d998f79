import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KindName, findKind } from './kinds';
import type { Target } from './target';
import { Tenant } from '../../test/support/world/world';

/** A case that failed once, shrunk as far as possible. */
export interface Regression {
  kind: KindName;
  /** The finding, for readers of the file. */
  finding: string;
  case: unknown;
}

export const FOLDER = join('tools', 'fuzz', 'regressions');
/** Replayed cases have their own tenant. */
export const REPLAYING = new Tenant(4);

export const regressions = (): string[] =>
  readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort();

export const readRegression = (name: string) =>
  JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Regression;

export function keepRegression(regression: Regression): string {
  const text = `${JSON.stringify(regression)}\n`;
  const name = `${regression.kind}-${createHash('sha256').update(text).digest('hex').slice(0, 8)}.json`;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, name), text);
  return join(FOLDER, name);
}

export async function replay(target: Target, { kind, case: one }: Regression): Promise<void> {
  await findKind(kind).run(target, one, REPLAYING);
}
