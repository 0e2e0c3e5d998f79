import { BuildFileError } from './build-file-error';
import type { Container } from './entries';

/** Files, links and folders, with those that only paths name. */
export const MAX_ENTRIES = 200_000;
const MAX_PATH_BYTES = 1024;
/** Limits like those of Linux. */
const MAX_LINKS_FOLLOWED = 40;
/** Limit for names of folders and files in all links together, as they are followed: a second of CPU time. */
const MAX_NAMES_FOLLOWED = 4_000_000;

interface Node {
  name: string;
  kind: 'folder' | 'file' | 'link' | 'implied folder';
  target: string;
  children: Map<string, Node> | undefined;
}

/**
 * Checks that the entries can be stored on every system, and that none is outside the folder of the build:
 * relative paths, no path twice, also by case or Unicode form, and links that point into the build, also
 * through other links.
 */
export function checkPaths({ files, folders, links }: Container): void {
  const root: Node = { name: '', kind: 'folder', target: '', children: new Map() };
  let entries = 0;
  const insert = (path: string, kind: Node['kind'], target = '') => {
    let node = root;
    const segments = segmentsOfPath(path);
    for (const [i, name] of segments.entries()) {
      if (node.kind === 'file' || node.kind === 'link')
        throw new BuildFileError(
          `${path} is inside of ${segments.slice(0, i).join('/')}, which is a ${node.kind}.`,
        );
      node.children ??= new Map();
      const isLast = i === segments.length - 1;
      const child = node.children.get(keyFor(name));
      if (!child) {
        if (++entries > MAX_ENTRIES)
          throw new BuildFileError(`The build has more than ${MAX_ENTRIES} entries.`);
        const added: Node = { name, kind: isLast ? kind : 'implied folder', target, children: undefined };
        node.children.set(keyFor(name), added);
        node = added;
        continue;
      }
      if (child.name !== name)
        throw new BuildFileError(`${path} differs from another path only by case or form.`);
      if (isLast) {
        if (child.kind !== 'implied folder' || kind !== 'folder')
          throw new BuildFileError(`${path} is in the build twice.`);
        child.kind = kind;
      }
      node = child;
    }
  };
  for (const { path } of folders) insert(path, 'folder');
  for (const { path } of files) insert(path, 'file');
  for (const { path, target } of links) insert(path, 'link', target);
  const steps = { left: MAX_NAMES_FOLLOWED };
  for (const { path, target } of links) checkTarget(root, path, target, steps);
}

const keyFor = (name: string) => name.normalize('NFC').toLowerCase();

function segmentsOfPath(path: string): string[] {
  const segments = path.split('/');
  const isSafe = (name: string) => name !== '' && name !== '.' && name !== '..';
  if (!segments.every(isSafe) || !isPortable(path))
    throw new BuildFileError(`${JSON.stringify(path)} isn’t a relative path inside of the build.`);
  return segments;
}

/** A backslash or a drive letter would be a separator or another disk on Windows. */
const isPortable = (path: string) =>
  Buffer.byteLength(path) <= MAX_PATH_BYTES && !/[\\\0]/.test(path) && !/^[a-z]:/i.test(path);

function checkTarget(root: Node, path: string, target: string, steps: { left: number }): void {
  const outside = () =>
    new BuildFileError(`The link ${path} points outside of the build: ${JSON.stringify(target)}`);
  if (target === '' || target.startsWith('/') || !isPortable(target)) throw outside();
  // The folders from the root to the current one; undefined if the build doesn't contain it.
  const folders: (Node | undefined)[] = [root];
  for (const name of path.split('/').slice(0, -1)) folders.push(folders.at(-1)!.children!.get(keyFor(name)));
  const pending = target.split('/').reverse();
  let followed = 0;
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (--steps.left < 0) throw new BuildFileError('The links of the build lead through too many folders.');
    if (name === '' || name === '.') continue;
    if (name === '..') {
      folders.pop();
      if (folders.length === 0) throw outside();
      continue;
    }
    const child = folders.at(-1)?.children?.get(keyFor(name));
    if (child?.kind !== 'link') {
      folders.push(child);
      continue;
    }
    if (++followed > MAX_LINKS_FOLLOWED)
      throw new BuildFileError(`The link ${path} leads through too many links.`);
    // Absolute targets of the links in between are rejected as well.
    if (child.target.startsWith('/')) throw outside();
    pending.push(...child.target.split('/').reverse());
  }
}
