import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import { loadSettings } from '../../src/platform/config/load-settings';
import { SECRET_NAMES, SETTING_NAMES } from '../../src/platform/config/settings';
import { runIf } from '../support/run-if';

const root = path.join(__dirname, '..', '..');
const read = (...names: string[]) => readFileSync(path.join(root, ...names), 'utf8');
const page = ['docker-compose', 'systemd', 'one-machine']
  .map((name) => read('docs', 'guides', `${name}.md`))
  .join('\n');
const manifest = JSON.parse(read('package.json')) as { version: string; scripts: Record<string, string> };
const settingNames = [...SETTING_NAMES, ...SECRET_NAMES.map((name) => `${name}_FILE`)];

/** NAME=value lines, as systemd and Compose read them. */
const parseVariables = (text: string) =>
  Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]));
const SECRETS: Record<string, string> = { DATABASE_URL: 'postgresql://gamewharf:x@127.0.0.1:5432/gamewharf' };
/** The settings that the service reads from them, with a plausible value for each file. */
function loadWithSecrets(variables: Record<string, string>) {
  const given = Object.entries(variables).map(([name, value]) => {
    const secret = name.replace(/_FILE$/, '');
    return [secret, secret === name ? value : (SECRETS[secret] ?? 'x'.repeat(64))];
  });
  return loadSettings(Object.fromEntries(given) as NodeJS.ProcessEnv);
}

describe('deploy/compose', () => {
  interface Service {
    image: string;
    env_file?: string;
    command?: string[];
    user?: string;
    init?: boolean;
    read_only?: boolean;
    cap_drop?: string[];
    security_opt?: string[];
    mem_limit?: string;
    restart: string;
    ports?: string[];
    environment?: Record<string, string>;
    secrets?: string[];
    volumes?: string[];
    stop_grace_period?: string;
    healthcheck?: { test: string[] };
  }
  interface Compose {
    services: Record<string, Service>;
    secrets: Record<string, { file: string }>;
    volumes: Record<string, unknown>;
  }
  const compose = parse(read('deploy', 'compose', 'compose.yaml'), { merge: true }) as Compose;
  const { database, migrate, service } = compose.services as Record<
    'database' | 'migrate' | 'service',
    Service
  >;
  const file = parseVariables(read('deploy', 'compose', 'gamewharf.env'));
  const ours = [migrate, service];

  it('runs the current version', () => {
    for (const { image } of ours) expect(image).toBe(`gamewharf:${manifest.version}`);
    expect(page).toContain(`--tag gamewharf:${manifest.version}`);
  });
  it('gives both the settings that they need, and no unknown ones', () => {
    for (const { environment } of ours) {
      expect(() => loadWithSecrets({ NODE_ENV: 'production', ...file, ...environment })).not.toThrow();
      for (const name of Object.keys({ ...file, ...environment })) expect(settingNames).toContain(name);
    }
    expect(file).toMatchObject({ PUBLIC_URL: expect.any(String), STORE_URL: expect.any(String) });
  });
  it('reads its settings from a copy that git ignores', () => {
    for (const { env_file } of ours) expect(env_file).toBe('settings.env');
    expect(page).toContain('cp gamewharf.env settings.env');
    expect(read('.gitignore').split('\n')).toContain('deploy/compose/settings.env');
  });
  it('reads each secret from a file that the page creates', () => {
    for (const { environment, secrets } of [database, ...ours]) {
      for (const [name, value] of Object.entries(environment ?? {}))
        if (/PASSWORD|PEPPER|TOKEN|DATABASE_URL/.test(name))
          expect([name, value]).toEqual([
            expect.stringMatching(/_FILE$/),
            expect.stringMatching(/^\/run\/secrets\//),
          ]);
      const files = Object.values(environment ?? {}).filter((value) => value.startsWith('/run/secrets/'));
      expect(files.map((value) => path.basename(value)).sort()).toEqual([...(secrets ?? [])].sort());
    }
    for (const [name, { file: where }] of Object.entries(compose.secrets)) {
      expect(where).toBe(`./secrets/${name}`);
      expect(page).toContain(`secrets/${name}`);
    }
    expect(read('.gitignore').split('\n')).toContain('deploy/compose/secrets/');
  });
  it('confines the service like the cluster does', () => {
    for (const one of ours)
      expect(one).toMatchObject({
        user: '1000:1000',
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges'],
        mem_limit: '512m',
      });
  });
  it('has an init process, which passes on signals and reaps the processes of health checks', () => {
    for (const { init } of ours) expect(init).toBe(true);
  });
  it('is reachable only from this machine, and the database from nowhere', () => {
    expect(service.ports).toEqual(['127.0.0.1:8080:8080']);
    expect([database.ports, migrate.ports]).toEqual([undefined, undefined]);
  });
  it('allows enough time to drain', () => {
    const { DRAIN_SECONDS } = loadWithSecrets({ NODE_ENV: 'production', ...file, ...service.environment });
    expect(parseInt(service.stop_grace_period!, 10)).toBeGreaterThanOrEqual(DRAIN_SECONDS! + 10);
  });
  it('restarts what exits, except a completed migration', () => {
    expect([database, service, migrate].map(({ restart }) => restart)).toEqual([
      'unless-stopped',
      'unless-stopped',
      'on-failure',
    ]);
  });
  it('keeps game files in a volume that the image gives to the user of the service', () => {
    const { FILES_DIR } = file as Record<string, string>;
    for (const { volumes } of ours) expect(volumes).toEqual([`files:${FILES_DIR}`]);
    expect(compose.volumes).toHaveProperty('files');
    expect(read('Dockerfile')).toContain(`install -d -o 1000 -g 1000 ${FILES_DIR}\n`);
  });
  it('adds Redis with a second file', () => {
    const { services } = parse(read('deploy', 'compose', 'compose.redis.yaml')) as Compose;
    const url = services.service!.environment!.REDIS_URL!;
    expect(Object.keys(services)).toContain(new URL(url).hostname);
  });
  it('adds a bucket with a second file and the settings shown in gamewharf.env', () => {
    const { services, secrets } = parse(read('deploy', 'compose', 'compose.bucket.yaml')) as Compose;
    const shown = parseVariables(
      read('deploy', 'compose', 'gamewharf.env').replaceAll('#FILES_S3_', 'FILES_S3_'),
    );
    for (const [name, base] of Object.entries({ migrate, service })) {
      const { environment, secrets: used } = services[name]!;
      expect(
        loadWithSecrets({ NODE_ENV: 'production', ...shown, ...base.environment, ...environment }),
      ).toMatchObject({ FILES_S3_BUCKET: 'my-store-files', FILES_S3_ACCESS_KEY_ID: expect.any(String) });
      const { FILES_DIR, ...fromSecrets } = environment!;
      expect(FILES_DIR).toBe('');
      expect(Object.values(fromSecrets)).toEqual(used!.map((secret) => `/run/secrets/${secret}`));
    }
    for (const [name, { file: where }] of Object.entries(secrets)) {
      expect(where).toBe(`./secrets/${name}`);
      expect(page).toContain(`secrets/${name}`);
    }
  });
});

// Clients of the first API version have their key in the path, and nginx logs paths in both logs.
it('keeps paths out of the logs of nginx', () => {
  const [, server] = /\n((?: {4}.*\n)+? {4}location \/ \{)/.exec(page) ?? [];
  expect(server).toContain('access_log off;');
  expect(server).toMatch(/error_log \S+ crit;/);
});

describe('deploy/systemd', () => {
  const folder = path.join(root, 'deploy', 'systemd');
  const unit = read('deploy', 'systemd', 'gamewharf.service');
  const readDirectives = (name: string) =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!);
  const variables = {
    ...parseVariables(read('deploy', 'systemd', 'gamewharf.env')),
    ...parseVariables(readDirectives('Environment').join('\n').replaceAll(' ', '\n')),
  };
  const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;
  const withAnalyze = runIf(hasAnalyze, 'systemd-analyze is not installed');

  it('gives the required settings, and no unknown ones', () => {
    expect(loadWithSecrets(variables)).toMatchObject({
      NODE_ENV: 'production',
      PUBLIC_URL: expect.any(String),
    });
    for (const name of Object.keys(variables)) expect(settingNames).toContain(name);
  });
  it('reads each secret from a credential that the page creates', () => {
    const files = Object.values(variables).filter((value) => value.startsWith('%d/'));
    const credentials = readDirectives('LoadCredential').map((value) => value.split(':') as [string, string]);
    expect(files.map((value) => value.slice(3)).sort()).toEqual(credentials.map(([name]) => name).sort());
    for (const [, where] of credentials) expect(page).toContain(where);
  });
  it('starts what the image starts, after the migration', () => {
    expect(`/usr/bin/${manifest.scripts['start:prod']}`).toBe(readDirectives('ExecStart')[0]);
    expect(readDirectives('ExecStartPre')).toEqual(['/usr/bin/node dist/src/cli.js migrate']);
  });
  it("runs the operator's command with the same settings from the same folder", () => {
    const command = read('deploy', 'systemd', 'gamewharf');
    const given = parseVariables(command);
    expect(loadWithSecrets({ ...given, PUBLIC_URL: variables.PUBLIC_URL! }).NODE_ENV).toBe('production');
    for (const [name, value] of Object.entries(given)) {
      expect(settingNames).toContain(name);
      if (name.endsWith('_FILE')) expect(unit).toContain(`:${value}\n`);
    }
    expect(command).toContain(`${readDirectives('WorkingDirectory')[0]}/dist/src/cli.js "$@"`);
    expect(page).toContain('install --mode=755 deploy/systemd/gamewharf /usr/local/bin/');
  });
  it('allows enough time to drain', () => {
    const { DRAIN_SECONDS } = loadWithSecrets(variables);
    expect(Number(readDirectives('TimeoutStopSec')[0])).toBeGreaterThanOrEqual(DRAIN_SECONDS! + 10);
  });
  // systemd would delete all shared memory of `postgres` when the backup ends, including that of the server, which then
  // accepts no connection.
  it('keeps the shared memory of the database server', () => {
    const backup = read('deploy', 'systemd', 'gamewharf-backup.service');
    expect(backup).toMatch(/^User=postgres$/m);
    expect(backup).not.toMatch(/^RemoveIPC=/m);
  });
  it('has every unit on the page', () => {
    for (const name of readdirSync(folder).filter((one) => /\.(service|timer)$/.test(one)))
      expect(page).toContain(path.parse(name).name);
  });
  withAnalyze.test('is valid for systemd', () => {
    const copy = mkdtempSync(path.join(tmpdir(), 'gamewharf-units-'));
    try {
      cpSync(folder, copy, { recursive: true });
      const names = readdirSync(copy).filter((name) => /\.(service|timer)$/.test(name));
      for (const name of names) {
        // The test doesn't depend on the programs of this machine.
        const text = readFileSync(path.join(copy, name), 'utf8').replace(/^(Exec\w+=)\S+/gm, '$1/bin/true');
        writeFileSync(path.join(copy, name), text);
      }
      const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', ...names], {
        cwd: copy,
        encoding: 'utf8',
      });
      expect([status, `${stdout}${stderr}`]).toEqual([0, '']);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });
  withAnalyze.test.each(['gamewharf.service', 'gamewharf-backup.service'])(
    '%s has an exposure level under 2.0',
    (name) => {
      const args = ['security', '--offline=true', '--no-pager', '--threshold=20', path.join(folder, name)];
      const { status, stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
      expect([status, /exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]]).toEqual([
        0,
        expect.stringMatching(/^[01]\.\d$/),
      ]);
    },
  );
});
