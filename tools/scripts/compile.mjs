// Compiles src and migrations into dist before `npm start` and `npm run gamewharf`, if they have changed. Only swc, in
// half a second, without type checks: `npm run build` has those. docs/contributing/decisions/features.md
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
process.chdir(root);
const SWC = 'test/support/swc.json';
const STAMP = 'dist/compiled';
// The incremental cache of `nest build`: if it exists, dist may contain its output; without it, `nest build` compiles
// everything again.
const MEMORY_OF_TSC = 'dist/tsconfig.build.tsbuildinfo';

const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.join(parentPath, name))
    .sort();

const sources = ['src', 'migrations'].flatMap(filesIn);
const stamp = hashFiles([
  ...sources,
  SWC,
  'nest-cli.json',
  'package-lock.json',
  fileURLToPath(import.meta.url),
]);
const outputs = new Map(sources.map((file) => [file, path.join('dist', file.replace(/\.ts$/, '.js'))]));

if (!isCompiled()) {
  const began = performance.now();
  process.stderr.write('Compiling changed files: ');
  await compile();
  process.stderr.write(`${((performance.now() - began) / 1000).toFixed(1)} s.\n`);
}

function hashFiles(files) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

function isCompiled() {
  if (existsSync(MEMORY_OF_TSC) || !existsSync(STAMP) || readFileSync(STAMP, 'utf8') !== stamp) return false;
  return [...outputs.values()].every((file) => existsSync(file)) && staleFiles().length === 0;
}

async function compile() {
  const { transformFile } = await import('@swc/core');
  const options = { ...JSON.parse(readFileSync(SWC, 'utf8')), swcrc: false, sourceMaps: true };
  // Keeps `import()`, because some packages are ES modules.
  options.module = { ...options.module, ignoreDynamic: true };
  rmSync(STAMP, { force: true });
  rmSync(MEMORY_OF_TSC, { force: true });
  for (const file of staleFiles()) rmSync(file, { force: true });
  await Promise.all(
    [...outputs].map(async ([source, output]) => {
      mkdirSync(path.dirname(output), { recursive: true });
      if (!source.endsWith('.ts')) return cpSync(source, output);
      const sourceFileName = path.relative(path.dirname(output), source);
      const { code, map } = await transformFile(source, { ...options, sourceFileName });
      replace(`${output}.map`, map);
      replace(output, `${code}//# sourceMappingURL=${path.basename(output)}.map\n`);
    }),
  );
  replace(STAMP, stamp);
}

/**
 * Atomically, because another process may be reading the file. The temporary file is outside of the folders in which
 * another process that compiles deletes stale files.
 */
function replace(file, text) {
  const temporary = `${STAMP}.${process.pid}`;
  writeFileSync(temporary, text);
  renameSync(temporary, file);
}

/** Output of deleted source files. A deleted migration would still run. */
function staleFiles() {
  const current = new Set(outputs.values());
  return ['dist/src', 'dist/migrations']
    .filter((folder) => existsSync(folder))
    .flatMap(filesIn)
    .filter((file) => !current.has(file.replace(/\.map$/, '')));
}
