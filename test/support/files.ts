import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Environment, useStore } from './app';

/** A running service with folders for files and builds, which are deleted at the end. */
export function useFiles(more: Environment = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'gamewharf-files-'));
  const environment = { FILES_DIR: join(folder, 'files'), BUILD_DIR: join(folder, 'builds'), ...more };
  useStore(environment);
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return { folder, environment };
}
