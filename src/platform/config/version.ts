import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version in package.json, two folders above this one, or three in the compiled code. */
export function versionOfThis(): string {
  const file = ['../../..', '../../../..'].map((up) => join(__dirname, up, 'package.json')).find(existsSync)!;
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
