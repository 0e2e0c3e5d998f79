import { readFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { transformFileSync } from '@swc/core';

const options = JSON.parse(readFileSync(new URL('../swc.json', import.meta.url), 'utf8'));
Module._extensions['.ts'] = (module, file) =>
  module._compile(transformFileSync(file, { ...options, swcrc: false }).code, file);

/** Loads TypeScript on a thread started by a test: jest compiles only what it loads itself. */
export const load = createRequire(import.meta.url);
