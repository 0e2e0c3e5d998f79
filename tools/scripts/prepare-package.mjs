// What `npm pack` does after the build: node tools/scripts/prepare-package.mjs
// It makes the types of gamewharf/client from the description of the API, and removes what an older build left in dist/.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');

for (const folder of ['src', 'migrations']) removeStale(folder);
await writeTypes();
// The application was never started, and has nothing to close.
process.exit();

function removeStale(folder) {
  for (const name of readdirSync(path.join(root, 'dist', folder), { recursive: true })) {
    const source = path.join(root, folder, name);
    const sources = [source, source.replace(/\.js(\.map)?$/, '.ts')];
    if (!sources.some(existsSync))
      rmSync(path.join(root, 'dist', folder, name), { recursive: true, force: true });
  }
}

async function writeTypes() {
  const require = createRequire(path.join(root, 'dist', 'src', 'main.js'));
  require('reflect-metadata');
  const { createApp } = require('./create-app.js');
  const { describeApi } = require('./platform/openapi/describe-api.js');
  const { loadSettings } = require('./platform/config/settings.js');
  const { createLogger } = require('./platform/observability/logger.js');
  const settings = loadSettings({ LOG_LEVEL: 'silent' });
  const app = await createApp(settings, createLogger(settings.LOG_LEVEL));
  const types = astToString(await openapiTS(describeApi(app)));
  writeFileSync(path.join(root, 'client', 'api.d.ts'), types);
}
