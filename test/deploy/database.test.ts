import {
  databaseUrl,
  type Environment,
  ENVIRONMENTS,
  renderEnvironment,
  mebibytes,
  one,
  only,
  loadContainerSettings,
  withKubectl,
} from '../support/overlays';

withKubectl.describe.each(ENVIRONMENTS)('%s', (environment) => {
  let rendered: Environment;
  beforeAll(() => {
    rendered = renderEnvironment(environment);
  });

  const cluster = () => one(rendered.database, 'Cluster').spec;
  const pooler = () => one(rendered.database, 'Pooler').spec;

  it('has three instances on three machines', () => {
    expect(cluster().instances).toBe(3);
    expect(cluster().affinity).toEqual({
      enablePodAntiAffinity: true,
      podAntiAffinityType: environment === 'production' ? 'required' : 'preferred',
      topologyKey: 'kubernetes.io/hostname',
    });
  });
  it('acknowledges only writes on two machines, and promotes only a machine with all of them', () => {
    expect(cluster().postgresql.synchronous).toEqual({
      method: 'any',
      number: 1,
      dataDurability: 'required',
      failoverQuorum: true,
    });
  });
  it('has no superuser with a password', () => {
    expect(cluster().enableSuperuserAccess).toBe(false);
  });
  it('keeps the parameters of statements out of its log', () => {
    expect(cluster().postgresql.parameters.log_parameter_max_length).toBe('0');
  });
  it("limits shared memory to half of the pod's memory", () => {
    const { requests } = cluster().resources as { requests: { memory: string } };
    expect(mebibytes(cluster().postgresql.parameters.shared_buffers ?? '')).toBeLessThanOrEqual(
      mebibytes(requests.memory) / 2,
    );
  });
  it('archives every change and is backed up daily to an existing store', () => {
    const store = one(rendered.database, 'ObjectStore');
    expect(only(cluster().plugins)).toMatchObject({
      isWALArchiver: true,
      parameters: { barmanObjectName: store.metadata.name },
    });
    const backup = one(rendered.database, 'ScheduledBackup').spec;
    expect(backup).toMatchObject({
      method: 'plugin',
      cluster: { name: 'gamewharf-db' },
      pluginConfiguration: { name: only(cluster().plugins).name },
    });
    expect(backup.schedule).toMatch(/^\d+ \d+ \d+ \* \* \*$/);
  });
  it('uses a pooler in transaction mode that supports prepared statements', () => {
    expect(pooler().cluster.name).toBe(one(rendered.database, 'Cluster').metadata.name);
    expect(pooler().pgbouncer.poolMode).toBe('transaction');
    expect(Number(pooler().pgbouncer.parameters.max_prepared_statements)).toBeGreaterThan(0);
    expect(databaseUrl(rendered.api).hostname).toBe(one(rendered.database, 'Pooler').metadata.name);
  });
  it('is migrated without the pooler, which would lose the lock', () => {
    expect(databaseUrl(rendered.migrate).hostname).toBe('gamewharf-db-rw');
  });
  it('has a certificate with its name, which clients verify', () => {
    for (const container of rendered.containers) {
      const url = databaseUrl(container);
      expect(url.searchParams.get('sslmode')).toBe('verify-full');
      const certificate = url.searchParams.get('sslrootcert') ?? '';
      expect(container.volumeMounts.map(({ mountPath }) => `${mountPath}/ca.crt`)).toContain(certificate);
      expect(['gamewharf-db-rw', ...cluster().certificates.serverAltDNSNames]).toContain(url.hostname);
    }
  });
  it('allows all connections of its poolers, with a reserve for migrations and people', () => {
    const connections = pooler().instances * Number(pooler().pgbouncer.parameters.default_pool_size);
    expect(connections).toBeLessThanOrEqual(Number(cluster().postgresql.parameters.max_connections) - 20);
  });
  it('has poolers for the connections of all replicas, even without one pooler', () => {
    const clients = (pooler().instances - 1) * Number(pooler().pgbouncer.parameters.max_client_conn);
    const perReplica = loadContainerSettings(
      rendered.api,
      one(rendered.service, 'ConfigMap'),
    ).DATABASE_POOL_SIZE;
    expect(
      one(rendered.service, 'HorizontalPodAutoscaler').spec.maxReplicas * perReplica,
    ).toBeLessThanOrEqual(clients);
  });
  it('is in a namespace that allows only restricted pods', () => {
    expect(one(rendered.database, 'Namespace').metadata.labels).toMatchObject({
      'pod-security.kubernetes.io/enforce': 'restricted',
    });
  });
  it('shares that namespace only with the service', () => {
    const { name } = one(rendered.database, 'Namespace').metadata;
    for (const { kind, metadata } of rendered.everything)
      if (kind !== 'Namespace') expect(metadata.namespace).toBe(name);
  });
});
