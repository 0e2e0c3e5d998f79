import path from 'node:path';
import { kubernetes, type Manifest, problemsOf, render } from '../support/manifests';
import {
  changed,
  databaseUrl,
  environmentOf,
  one,
  only,
  withKubectl,
  useRestored,
  useStandbys,
  variable,
} from '../support/overlays';

const overlay = (name: string) => path.join(kubernetes, 'overlays', 'production', name);

withKubectl.describe('restoring production', () => {
  let restored: Manifest[];
  beforeAll(() => {
    restored = render(overlay('restore'));
  });

  it('is made of valid objects', async () => {
    for (const manifest of restored)
      expect([manifest.metadata.name, await problemsOf(manifest)]).toEqual([manifest.metadata.name, []]);
  });
  it('reads the archive of the first database and writes one of its own', () => {
    const { spec } = one(restored, 'Cluster');
    const source = only(spec.externalClusters).plugin.parameters;
    const written = only(spec.plugins).parameters.barmanObjectName;
    expect(source).toEqual({ barmanObjectName: 'gamewharf-backups', serverName: 'gamewharf-db' });
    expect(one(restored, 'ObjectStore').metadata.name).toBe(written);
    const first = one(render(overlay('database')), 'ObjectStore').spec.configuration.destinationPath;
    expect(one(restored, 'ObjectStore').spec.configuration.destinationPath).not.toBe(first);
  });
  it('is configured as the first database is', () => {
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
  it('stands beside it under names of its own', () => {
    const names = render(overlay('database')).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const { kind, metadata } of restored) expect(names).not.toContain(`${kind} ${metadata.name}`);
  });
  it('is put in use by one line, with its own credentials, for the service and the migration', () => {
    const { pods } = changed(useRestored('production'), (folder) => environmentOf('production', folder));
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

withKubectl.describe('reads from the standbys', () => {
  const both = (folder: string) => {
    useStandbys('production')(folder);
    useRestored('production')(folder);
  };

  it('are turned on by one line, through a pooler of their own, with the same credentials', async () => {
    const { service, database, api } = changed(useStandbys('production'), (folder) =>
      environmentOf('production', folder),
    );
    for (const manifest of service) expect(await problemsOf(manifest)).toEqual([]);
    const pooler = one(service, 'Pooler');
    expect(pooler.metadata.namespace).toBe('gamewharf');
    expect(pooler.spec.type).toBe('ro');
    const cluster = one(database, 'Cluster');
    expect(pooler.spec.cluster.name).toBe(cluster.metadata.name);
    expect(pooler.spec.instances * Number(pooler.spec.pgbouncer.parameters.default_pool_size)).toBeLessThan(
      Number(cluster.spec.postgresql.parameters.max_connections),
    );
    const [writes, reads] = [databaseUrl(api), databaseUrl(api, 'DATABASE_READ_URL')];
    expect(reads.href).toBe(writes.href.replace('pooler-rw', 'pooler-ro'));
    expect(reads.hostname).toBe(pooler.metadata.name);
  });
  it('follow to the restored database, through a pooler of its own', async () => {
    const { service } = changed(both, (folder) => environmentOf('production', folder));
    const pooler = one(service, 'Pooler');
    expect(await problemsOf(pooler)).toEqual([]);
    expect([pooler.metadata.name, pooler.spec.cluster.name]).toEqual([
      'gamewharf-db-restored-pooler-ro',
      'gamewharf-db-restored',
    ]);
    expect(JSON.stringify(pooler)).not.toContain('gamewharf-db-pooler');
  });
});

withKubectl.describe('all poolers', () => {
  it('have the same parameters, and try a database that is back within a second', () => {
    const poolers = changed(useStandbys('production'), (folder) => [
      ...environmentOf('production', folder).everything,
      ...render(path.join(folder, 'overlays', 'production', 'restore')),
    ]).filter(({ kind }) => kind === 'Pooler');
    expect(poolers.map(({ metadata }) => metadata.name).sort()).toEqual([
      'gamewharf-db-pooler-ro',
      'gamewharf-db-pooler-rw',
      'gamewharf-db-restored-pooler-rw',
    ]);
    const [first] = poolers as [Manifest];
    for (const { spec } of poolers) expect(spec.pgbouncer).toEqual(first.spec.pgbouncer);
    expect(first.spec.pgbouncer.parameters.server_login_retry).toBe('1');
  });
});
