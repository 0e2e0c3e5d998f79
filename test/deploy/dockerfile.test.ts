import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { SECRET_NAMES, SETTING_NAMES } from '../../src/platform/config/settings';
import { kubernetes } from '../support/manifests';

/** Each uppercase name with underscores in a file. */
const namesIn = (file: string) =>
  readFileSync(file, 'utf8').match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? [];

describe('Dockerfile', () => {
  const root = path.join(kubernetes, '..', '..');
  const text = readFileSync(path.join(root, 'Dockerfile'), 'utf8');
  const lines = text.replaceAll('\\\n', ' ').split('\n');
  const [, runtime] = text.split(/^FROM .* AS runtime$/m) as [string, string];

  it('starts all stages from one exact Node 24', () => {
    expect(lines).toContainEqual(expect.stringMatching(/^ARG NODE_IMAGE=node:24\.\d+\.\d+-\w+-slim$/));
    expect(lines.filter((line) => line.startsWith('FROM '))).toEqual([
      'FROM ${NODE_IMAGE} AS build',
      'FROM build AS mock-build',
      'FROM ${NODE_IMAGE} AS mock',
      'FROM ${NODE_IMAGE} AS runtime',
    ]);
  });
  it('builds with the script that the tests run', () => {
    expect(lines).toContain('RUN node tools/scripts/build-image-tree.mjs /image');
  });
  it('runs as a numeric user that does not own the code', () => {
    expect(runtime).toMatch(/^COPY --from=build --chown=0:0 \/image \/app$/m);
    expect(runtime.match(/^USER .*$/gm)).toEqual(['USER 1000:1000']);
  });
  it('leaves the heap limit to Node, which follows the memory limit of the container', () => {
    expect(lines.at(-1) === '' ? lines.at(-2) : lines.at(-1)).toMatch(/^CMD \["node", /);
    expect(text).not.toContain('--max-old-space-size');
  });
  it('has labels with its name, license, version and base', () => {
    const { version, license } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      version: string;
      license: string;
    };
    expect(lines).toContain(`ARG VERSION=${version}`);
    const label = (name: string) =>
      new RegExp(`org\\.opencontainers\\.image\\.${name}="([^"]+)"`).exec(runtime)?.[1];
    expect(['title', 'licenses', 'version', 'revision', 'base.name'].map(label)).toEqual([
      'Gamewharf',
      license,
      '${VERSION}',
      '${REVISION}',
      'docker.io/library/${NODE_IMAGE}',
    ]);
  });
  it('has no health check, which OCI images do not support', () => {
    expect(runtime).not.toMatch(/^HEALTHCHECK/m);
  });
  it('contains no secret and uses none during the build', () => {
    expect(text).not.toMatch(/^(ARG|ENV).*(TOKEN|PASSWORD|PEPPER|SECRET)/m);
  });
  it('copies only what .dockerignore allows', () => {
    const allowed = readFileSync(path.join(root, '.dockerignore'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1).replace(/\/$/, ''));
    const copied = lines
      .filter((line) => /^COPY (?!--from)/.test(line))
      .flatMap((line) => line.split(' ').slice(1, -1));
    expect(copied.length).toBeGreaterThan(0);
    for (const source of copied) expect(allowed).toContain(source);
  });
});

describe('names of settings', () => {
  const root = path.join(kubernetes, '..', '..');
  const files = [
    path.join(root, 'Dockerfile'),
    ...readdirSync(path.join(root, 'deploy'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name)),
  ];
  const settings = [...SETTING_NAMES, ...SECRET_NAMES.map((name) => `${name}_FILE`)];
  // Variables of builders, of the object store's Secret, of other images and systemd, and parts of a DATABASE_URL.
  const others = [
    'NODE_IMAGE',
    'GAMEWHARF_MOCK_TEMPLATE',
    'SOURCE_DATE_EPOCH',
    'ACCESS_KEY_ID',
    'ACCESS_SECRET_KEY',
    'DB_USER',
    'DB_PASSWORD',
    'DB_HOST',
    'DB_READ_HOST',
    'NPM_CONFIG_CAFILE',
    'POSTGRES_USER',
    'POSTGRES_PASSWORD_FILE',
    'AF_INET',
    'AF_INET6',
    'AF_UNIX',
  ];

  it('exist if deploy/ or the Dockerfile mentions them, including in comments and alerts', () => {
    const named = new Set(files.flatMap(namesIn));
    expect([...named].filter((name) => !settings.includes(name) && !others.includes(name))).toEqual([]);
    expect(named).toContain('DATABASE_POOL_SIZE');
  });

  it('that the image presets exist', () => {
    const [, line = ''] =
      / AS runtime$[^]*?^ENV (.*)$/m.exec(readFileSync(path.join(root, 'Dockerfile'), 'utf8')) ?? [];
    const preset = [...line.matchAll(/(\w+)=/g)].map(([, name]) => name);
    expect(preset).toContain('PORT');
    expect(preset.filter((name) => !SETTING_NAMES.includes(name!))).toEqual([]);
  });
});
