import { isDeepStrictEqual, parseArgs } from 'node:util';
import { randomInt } from 'node:crypto';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { BuildFileError } from '../../src/wharf/pwr/build-file-error';
import { writeSignature } from '../../src/wharf/pwr/signature';
import {
  chunked,
  joined,
  NO_TREE,
  rebuild,
  recordedTrees,
  recording,
  type Tree,
} from '../../test/support/pushed-builds';

const { values } = parseArgs({
  options: { seed: { type: 'string' }, cases: { type: 'string', default: '10000' } },
});
const seed = Number(values.seed ?? randomInt(2 ** 31));
/** Larger builds would take most of the time. */
const MAX_BYTES = 2_000_000;

// mulberry32 has a seed, so a run can be repeated.
let state = seed;
function random(below: number): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
}

/** The bytes before the messages: magic number and header. */
const messagesStart = (file: Buffer) => 5 + file[4]!;
const decompressMessages = (file: Buffer) => brotliDecompressSync(file.subarray(messagesStart(file)));
const withMessages = (file: Buffer, messages: Buffer) =>
  Buffer.concat([
    file.subarray(0, messagesStart(file)),
    brotliCompressSync(messages, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  ]);

/** Changes bytes, moves, repeats, removes or inserts some, or cuts the end. */
function mutated(bytes: Buffer): Buffer {
  let changed = Buffer.from(bytes);
  for (let times = 1 + random(3); times > 0 && changed.length > 1; times--) {
    const [at, length] = [random(changed.length), 1 + random(Math.min(64, changed.length))];
    const [before, piece, after] = [
      changed.subarray(0, at),
      changed.subarray(at, at + length),
      changed.subarray(at + length),
    ];
    const interesting = Buffer.from(
      [[0x00], [0x7f], [0x80, 0x80], [0xff, 0xff, 0xff, 0xff, 0x0f], [0x2e, 0x2e, 0x2f]][random(5)]!,
    );
    const variants: (() => Buffer[])[] = [
      () => [before, Buffer.from(piece.map((byte) => byte ^ (1 << random(8)))), after],
      () => [before, piece, piece, after],
      () => [before, after],
      () => [before, interesting, piece, after],
      () => [before, interesting, after],
      () => [before, changed.subarray(random(changed.length)).subarray(0, length), after],
      () => [before],
    ];
    changed = Buffer.concat(variants[random(variants.length)]!());
  }
  return changed;
}

/** Half of the cases change the messages, which the decompressor would otherwise reject. */
const mutatedFile = (file: Buffer) =>
  random(2) === 0 ? mutated(file) : withMessages(file, mutated(decompressMessages(file)));

interface Push {
  name: string;
  patch: Buffer;
  signature: Buffer;
  parent: Tree;
  tree: Tree;
}

async function recordedPushes(): Promise<Push[]> {
  const pushes: Push[] = [];
  for (const [name, trees] of Object.entries(recordedTrees())) {
    let parent = NO_TREE;
    for (const i of trees.keys()) {
      const [patch, signature] = ['patch', 'signature'].map((type) =>
        recording(`${name}.${i + 1}.${type}`),
      ) as [Buffer, Buffer];
      const tree = await rebuild(patch, signature, parent);
      const bytes = tree.contents.reduce((sum, { length }) => sum + length, 0);
      if (bytes <= MAX_BYTES) pushes.push({ name: `${name}.${i + 1}`, patch, signature, parent, tree });
      parent = tree;
    }
  }
  return pushes;
}

/** The tree that is built must have exactly the blocks of the signature, which is computed again from the tree. */
async function check(push: Push): Promise<'rejected' | 'same' | 'other signature' | string> {
  const other = random(3) === 0;
  const patch = !other || random(2) === 0 ? mutatedFile(push.patch) : push.patch;
  const signature = other ? mutatedFile(push.signature) : push.signature;
  let tree: Tree;
  try {
    tree = await rebuild(patch, signature, push.parent, 2 * MAX_BYTES);
  } catch (error) {
    return error instanceof BuildFileError ? 'rejected' : `crash: ${(error as Error).stack}`;
  }
  if (isDeepStrictEqual(tree, push.tree)) return 'same';
  if (!other) return 'another tree than the signature’s';
  const { container, contents } = tree;
  const computed = await joined(writeSignature(container, (file) => chunked(contents[file]!)));
  // If the file isn't compressed, the messages follow the header directly.
  const given = signature.subarray(messagesStart(signature));
  const isSame =
    decompressMessages(computed).equals(given) ||
    decompressMessages(computed).equals(decompressMessages(signature));
  return isSame ? 'other signature' : 'another tree than the signature’s';
}

async function main(): Promise<void> {
  const pushes = await recordedPushes();
  console.log(`seed ${seed}, ${pushes.length} recorded pushes`);
  const counts = new Map<string, number>();
  const started = performance.now();
  for (let i = 0; i < Number(values.cases); i++) {
    const push = pushes[random(pushes.length)]!;
    const outcome = await check(push);
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    if (!['rejected', 'same', 'other signature'].includes(outcome)) {
      process.exitCode = 1;
      console.log(`FOUND in case ${i}, ${push.name}: ${outcome}`);
    }
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `${values.cases} mutated pushes in ${seconds} s: ${[...counts].map(([name, n]) => `${n} ${name}`).join(', ')}`,
  );
}

void main();
