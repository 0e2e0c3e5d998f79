// Runs after the build in `npm run package`: node tools/scripts/prepare-package.mjs. Creates the folder dist/package,
// which `npm pack` packs: the compiled service, and clients with types generated from the API descriptions. The README
// is the package's own, because that of the repository is about a clone.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');

for (const folder of ['src', 'migrations']) removeStale(folder);
await writeTypes();
assemble();
// Exits because the app was never started and cannot be closed.
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
  const { createApp } = require('./app.js');
  const { describeApi } = require('./platform/openapi/describe-api.js');
  const { loadSettings } = require('./platform/config/load-settings.js');
  const { createLogger } = require('./platform/observability/logger.js');
  const settings = loadSettings({ LOG_LEVEL: 'silent' });
  const app = await createApp(settings, createLogger(settings.LOG_LEVEL));
  for (const [file, api] of [['api.d.ts'], ['operator-api.d.ts', 'operator']])
    writeFileSync(path.join(root, 'client', file), astToString(await openapiTS(describeApi(app, api))));
}

function assemble() {
  const out = path.join(root, 'dist', 'package');
  rmSync(out, { recursive: true, force: true });
  const filter = (source) => !source.endsWith('.map') && path.basename(source) !== 'README.md';
  for (const entry of ['LICENSE', 'client', 'dist/migrations', 'dist/src'])
    cpSync(path.join(root, entry), path.join(out, entry), { recursive: true, filter });
  cpSync(path.join(root, 'client', 'README.md'), path.join(out, 'README.md'));
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  for (const name of ['scripts', 'devDependencies', 'overrides', 'allowScripts', 'scarfSettings'])
    delete manifest[name];
  writeFileSync(path.join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}
