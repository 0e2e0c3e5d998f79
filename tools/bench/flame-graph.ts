import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

interface ProfileNode {
  id: number;
  callFrame: { functionName: string; url: string; lineNumber: number };
  children?: number[];
}

/** As V8 writes it. */
export interface CpuProfile {
  nodes: ProfileNode[];
  samples: number[];
  timeDeltas: number[];
}

interface Frame {
  name: string;
  self: number;
  total: number;
  children: Map<string, Frame>;
}

const WAITING = new Set(['(idle)', '(program)']);

function placeOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const file = url.startsWith('file:') ? relative(process.cwd(), fileURLToPath(url)) : url;
  const short = file.replaceAll('\\', '/').replace(/^(.*\/)?node_modules\//, '');
  return `${functionName || '(anonymous)'}${short && ` ${short}:${lineNumber + 1}`}`;
}

/** Microseconds by node. */
function timesOf({ samples, timeDeltas }: CpuProfile): Map<number, number> {
  const times = new Map<number, number>();
  samples.forEach((id, i) => times.set(id, (times.get(id) ?? 0) + timeDeltas[i]!));
  return times;
}

function treeOf(profile: CpuProfile): Frame {
  const times = timesOf(profile);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const root: Frame = { name: 'all', self: 0, total: 0, children: new Map() };
  const walk = (id: number, parent: Frame): number => {
    const node = nodes.get(id)!;
    const name = placeOf(node);
    if (WAITING.has(name)) return 0;
    let frame = parent.children.get(name);
    if (!frame) parent.children.set(name, (frame = { name, self: 0, total: 0, children: new Map() }));
    const self = times.get(id) ?? 0;
    let total = self;
    for (const child of node.children ?? []) total += walk(child, frame);
    frame.self += self;
    frame.total += total;
    return total;
  };
  const top = nodes.get(profile.nodes[0]!.id)!;
  for (const child of top.children ?? []) root.total += walk(child, root);
  return root;
}

/** The functions that took most time themselves. */
export function selfTimes(profile: CpuProfile, most: number): string[] {
  const times = timesOf(profile);
  const byPlace = new Map<string, number>();
  let all = 0;
  for (const node of profile.nodes) {
    const name = placeOf(node);
    if (name === '(idle)') continue;
    const time = times.get(node.id) ?? 0;
    all += time;
    byPlace.set(name, (byPlace.get(name) ?? 0) + time);
  }
  return [...byPlace]
    .sort((a, b) => b[1] - a[1])
    .slice(0, most)
    .map(([name, time]) => `${((100 * time) / all).toFixed(1).padStart(5)}%  ${name}`);
}

const WIDTH = 1400;
const ROW = 17;
const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

function colourOf(name: string): string {
  if (name.includes('dist/src/')) return '#4f9d69';
  if (name.includes(' node:')) return '#d9a441';
  return name.includes(' ') ? '#d98b61' : '#b8b8b8';
}

/** Width is time on the processor, from the event loop at the top to what it called; hover for the share. */
export function flameGraph(profile: CpuProfile, title: string): string {
  const root = treeOf(profile);
  const parts: string[] = [];
  let deepest = 0;
  const draw = (frame: Frame, x: number, depth: number): void => {
    const width = (frame.total / root.total) * WIDTH;
    if (width < 0.4) return;
    deepest = Math.max(deepest, depth);
    const y = 30 + depth * ROW;
    const share = ((100 * frame.total) / root.total).toFixed(1);
    const letters = Math.floor(width / 6.6);
    const label = letters > 3 ? frame.name.slice(0, letters) : '';
    parts.push(
      `<g><title>${escaped(frame.name)} ${share}%</title>` +
        `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${colourOf(frame.name)}"/>` +
        (label && `<text x="${(x + 2).toFixed(1)}" y="${y + 12}">${escaped(label)}</text>`) +
        '</g>',
    );
    let at = x;
    for (const child of [...frame.children.values()].sort((a, b) => b.total - a.total)) {
      draw(child, at, depth + 1);
      at += (child.total / root.total) * WIDTH;
    }
  };
  draw(root, 0, 0);
  const height = 30 + (deepest + 2) * ROW;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="6" y="20" font-size="15">${escaped(title)}</text>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}
