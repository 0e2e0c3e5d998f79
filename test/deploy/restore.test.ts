import path from 'node:path';
import { kubernetes, type Manifest, validateManifest, render } from '../support/manifests';
import {
  changed,
  databaseUrl,
  renderEnvironment,
  one,
  only,
  withKubectl,
  useRestored,
  variable,
} from '../support/overlays';

const overlay = (name: string) => path.join(kubernetes, 'overlays', 'production', name);

withKubectl.describe('restoring production', () => {
  let restored: Manifest[];
  beforeAll(() => {
    restored = render(overlay('restore'));
  });

  it('consists of valid objects', async () => {
    for (const manifest of restored)
      expect([manifest.metadata.name, await validateManifest(manifest)]).toEqual([
        manifest.metadata.name,
        [],
      ]);
  });
  it('reads the archive of the first database and writes its own', () => {
    const { spec } = one(restored, 'Cluster');
    const source = only(spec.externalClusters).plugin.parameters;
    const written = only(spec.plugins).parameters.barmanObjectName;
    expect(source).toEqual({ barmanObjectName: 'gamewharf-backups', serverName: 'gamewharf-db' });
    expect(one(restored, 'ObjectStore').metadata.name).toBe(written);
    const first = one(render(overlay('database')), 'ObjectStore').spec.configuration.destinationPath;
    expect(one(restored, 'ObjectStore').spec.configuration.destinationPath).not.toBe(first);
  });
  it('is configured like the first database', () => {
    const first = one(render(overlay('database')), 'Cluster').spec;
    const second = one(restored, 'Cluster').spec;
    for (const field of [
      'instances',
      'imageName',
      'postgresql',
      'affinity',
      'resources',
      'storage',
      'walStorage',
    ])
      expect([field, second[field]]).toEqual([field, first[field]]);
  });
  it('uses names that the first database does not use', () => {
    const names = render(overlay('database')).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const { kind, metadata } of restored) expect(names).not.toContain(`${kind} ${metadata.name}`);
  });
  it('is switched to with one line, with its own credentials, for the service and the migration', () => {
    const { pods } = changed(useRestored('production'), (folder) => renderEnvironment('production', folder));
    for (const { spec } of pods) {
      const container = only(spec.containers);
      expect(databaseUrl(container).hostname).toMatch(/^gamewharf-db-restored(-pooler)?-rw$/);
      for (const name of ['DB_USER', 'DB_PASSWORD'])
        expect(variable(container, name)?.valueFrom?.secretKeyRef?.name).toBe('gamewharf-db-restored-app');
      expect(spec.volumes.find(({ name }) => name === 'database-ca')?.secret?.secretName).toBe(
        'gamewharf-db-restored-ca',
      );
    }
  });
});

withKubectl.describe('all poolers', () => {
  it('have the same parameters, and retry a database within a second', () => {
    const poolers = [...renderEnvironment('production').everything, ...render(overlay('restore'))].filter(
      ({ kind }) => kind === 'Pooler',
    );
    expect(poolers.map(({ metadata }) => metadata.name).sort()).toEqual([
      'gamewharf-db-pooler-rw',
      'gamewharf-db-restored-pooler-rw',
    ]);
    const [first] = poolers as [Manifest];
    for (const { spec } of poolers) expect(spec.pgbouncer).toEqual(first.spec.pgbouncer);
    expect(first.spec.pgbouncer.parameters.server_login_retry).toBe('1');
  });
});
