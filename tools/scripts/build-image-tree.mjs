// Builds the folder that becomes the container image: node tools/scripts/build-image-tree.mjs FOLDER [--embedded-postgres]
// The Dockerfile runs this script too, so what the tests start from a plain folder is what a container runs.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { billOfMaterials } from './bill-of-materials.mjs';
import { forProduction } from './production-packages.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const out = process.argv[2] && path.resolve(process.argv[2]);
/** The image for tests has a PostgreSQL server of its own. */
const hasPostgres = process.argv.includes('--embedded-postgres');
const modifiedAt = Number(process.env.SOURCE_DATE_EPOCH ?? 0);

const NEVER_RUN = /\.([cm]?ts|map|md|markdown|tsbuildinfo)$|\.(test|spec)\.[cm]?js$/i;
const LEGAL_TEXT = /^(licen[cs]e|copying|copyright|notice|patents|authors)\b/i;
const FOLDERS_THAT_NEVER_RUN = [
  'test',
  'tests',
  '__tests__',
  'benchmark',
  'benchmarks',
  'example',
  'examples',
  '.github',
];

try {
  build();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

function build() {
  if (!out) throw new Error('Usage: node tools/scripts/build-image-tree.mjs FOLDER');
  if (existsSync(out) && readdirSync(out).length > 0)
    throw new Error(`${out} is not empty: name a new folder`);
  if (!Number.isSafeInteger(modifiedAt) || modifiedAt < 0) {
    throw new Error('SOURCE_DATE_EPOCH must be a number of seconds since 1970');
  }
  if (!existsSync(path.join(root, 'node_modules', '@nestjs', 'cli'))) {
    throw new Error('The compiler is missing: run npm ci first');
  }
  mkdirSync(out, { recursive: true });
  compile();
  const installed = copyProductionPackages();
  dropWhatNeverRuns(Object.keys(installed.packages).filter((place) => place !== ''));
  writeJson('sbom.cdx.json', billOfMaterials(installed));
  const files = settle(out);
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  console.log(`${out}: ${files.length} files, ${(bytes / 1e6).toFixed(1)} MB, sha256:${digest(files)}`);
}

function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (error) throw new Error(`${command} could not be started: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`);
}

/** Runs nest build into the folder without its incremental cache, so that stale output of a clone is never included. */
function compile() {
  const work = mkdtempSync(path.join(root, '.image-build-'));
  try {
    const config = path.join(work, 'tsconfig.json');
    writeFileSync(
      config,
      JSON.stringify({
        extends: '../tsconfig.build.json',
        compilerOptions: {
          outDir: path.join(out, 'dist'),
          incremental: false,
          tsBuildInfoFile: null,
          sourceMap: false,
          // `npm run types` checks them; without, the compiler takes half the time for the same output.
          noCheck: true,
        },
        include: ['../src', '../migrations'],
      }),
    );
    const nest = createRequire(path.join(root, 'package.json')).resolve('@nestjs/cli/bin/nest.js');
    run(process.execPath, [nest, 'build', '--path', path.relative(root, config)], { cwd: root });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  // nest copies assets to the folder in nest-cli.json, not to this one.
  for (const { include } of readJson('nest-cli.json').compilerOptions.assets) {
    const folder = path.dirname(include);
    cpSync(path.join(root, 'src', folder), path.join(out, 'dist', 'src', folder), { recursive: true });
  }
  for (const entry of ['main.js', 'cli.js']) {
    if (!existsSync(path.join(out, 'dist', 'src', entry)))
      throw new Error(`The build created no dist/src/${entry}`);
  }
}

/**
 * Copies packages instead of installing them again: what `npm ci --omit=...` omits differs between npm versions, and
 * some optional packages, such as argon2's native part, are required.
 */
function copyProductionPackages() {
  const lock = forProduction(readJson('package-lock.json'), {
    without: hasPostgres ? [] : ['embedded-postgres'],
  });
  const { name, version, license, engines } = readJson('package.json');
  writeJson('package.json', { name, version, license, private: true, engines });
  const packages = { '': lock.packages[''] };
  for (const [place, wanted] of Object.entries(lock.packages)) {
    if (place === '') continue;
    // Native parts for other platforms.
    if (wanted.optional && !existsSync(path.join(root, place))) continue;
    if (readJson(path.join(place, 'package.json')).version !== wanted.version)
      throw new Error(`${place} does not match the lock file: run npm ci first`);
    const inner = path.join(root, place, 'node_modules');
    cpSync(path.join(root, place), path.join(out, place), {
      recursive: true,
      filter: (source) => source !== inner,
      // The libraries of PostgreSQL have relative links.
      verbatimSymlinks: true,
    });
    packages[place] = wanted;
  }
  return { ...lock, packages };
}

function readJson(name) {
  return JSON.parse(readFileSync(path.join(root, name), 'utf8'));
}

function writeJson(name, value) {
  writeFileSync(path.join(out, name), `${JSON.stringify(value, null, 2)}\n`);
}

/** Removes TypeScript, source maps, tests and documentation of dependencies, but not their licenses. */
function dropWhatNeverRuns(places) {
  for (const place of places)
    for (const folder of FOLDERS_THAT_NEVER_RUN)
      rmSync(path.join(out, place, folder), { recursive: true, force: true });
  for (const file of walk(path.join(out, 'node_modules'))) {
    const name = path.basename(file);
    if (NEVER_RUN.test(name) && !LEGAL_TEXT.test(name)) rmSync(file);
  }
  removeEmptyFolders(path.join(out, 'node_modules'));
}

function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmptyFolders(path.join(folder, entry.name));
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

function* walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(full);
    else yield full;
  }
}

/** Sets one time and fixed modes for all files, so that the same sources create the same image. */
function settle(folder) {
  const files = [];
  const command = path.join(folder, 'dist', 'src', 'cli.js');
  const visit = (full) => {
    const stat = lstatSync(full);
    if (stat.isDirectory()) {
      for (const name of readdirSync(full).sort()) visit(path.join(full, name));
      chmodSync(full, 0o755);
    } else {
      const link = stat.isSymbolicLink();
      if (!link) chmodSync(full, full === command ? 0o755 : 0o644);
      const content = link ? readlinkSync(full) : readFileSync(full);
      const name = path.relative(folder, full).split(path.sep).join('/');
      files.push({ name, size: stat.size, sha256: createHash('sha256').update(content).digest('hex') });
    }
    lutimesSync(full, modifiedAt, modifiedAt);
  };
  visit(folder);
  return files;
}

function digest(files) {
  const hash = createHash('sha256');
  for (const { name, sha256 } of files) hash.update(`${sha256}  ${name}\n`);
  return hash.digest('hex');
}
