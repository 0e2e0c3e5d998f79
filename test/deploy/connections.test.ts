import { type Manifest, render } from '../support/manifests';
import { type Endpoint, type Port, rejections } from '../support/network';
import {
  changed,
  type Environment,
  renderEnvironment,
  environmentVariables,
  one,
  loadContainerSettings,
  withKubectl,
  useComponent,
  useRestored,
  useSetting,
} from '../support/overlays';

type Change = (folder: string) => void;
const collector = 'OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.monitoring:4318';

/** Each way in which docs/guides/kubernetes.md and docs/explanation/scaling.md use the manifests. */
const WAYS: [environment: string, how: string, changes: Change[]][] = [
  ['staging', 'as it is', []],
  ['production', 'as it is', []],
  ['production', 'with traces', [useSetting('production', collector)]],
  ['production', 'with webhooks', [useComponent('production', 'webhooks')]],
  ['production', 'with a bucket', [useComponent('production', 'bucket')]],
  [
    'production',
    'with a bucket that its pods write to',
    [useComponent('production', 'bucket'), useComponent('production', 'bucket-writes')],
  ],
  ['production', 'with the restored database', [useRestored('production')]],
];

withKubectl.describe.each(WAYS)('%s, %s', (environment, how, changes) => {
  let rendered: Environment;
  let manifests: Manifest[];
  beforeAll(() => {
    changed(
      (folder) => changes.forEach((change) => change(folder)),
      (folder) => {
        rendered = renderEnvironment(environment, folder);
        const restored = environment === 'production' ? render(`${folder}/overlays/production/restore`) : [];
        manifests = [...rendered.everything, ...restored];
      },
    );
  });

  const pod = (name: 'api' | 'migrate'): Endpoint => {
    const { labels } = rendered.pods[name === 'api' ? 0 : 1];
    const names = rendered[name].ports?.map((one) => [one.containerPort, one.name]);
    return { namespace: namespace(), labels, portNames: Object.fromEntries(names ?? []) };
  };
  const namespace = () => one(rendered.database, 'Namespace').metadata.name;
  const poolers = () => manifests.filter(({ kind }) => kind === 'Pooler');
  const poolerPod = (name: string): Endpoint => ({
    namespace: namespace(),
    labels: { 'cnpg.io/poolerName': name, 'cnpg.io/podRole': 'pooler' },
  });
  const databasePod = (cluster: string): Endpoint => ({
    namespace: namespace(),
    labels: { 'cnpg.io/cluster': cluster, 'cnpg.io/podRole': 'instance' },
  });
  const dns: Endpoint = { namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } };

  /** The pods behind a host name: a pooler of these manifests, a database, or something in another namespace. */
  function behind(host: string): Endpoint {
    const [name = '', elsewhere] = host.split('.');
    if (elsewhere) return { namespace: elsewhere };
    if (poolers().some(({ metadata }) => metadata.name === name)) return poolerPod(name);
    return databasePod(one(manifests, 'Cluster', name.replace(/-rw$/, '')).metadata.name);
  }
  function findCluster(host: string): Manifest {
    const pooler = poolers().find(({ metadata }) => metadata.name === host);
    return one(manifests, 'Cluster', pooler?.spec.cluster.name ?? host.replace(/-rw$/, ''));
  }
  const PORTS: Record<string, number> = { 'postgresql:': 5432, 'redis:': 6379, 'http:': 80, 'https:': 443 };
  const addresses = (name: 'api' | 'migrate') =>
    Object.entries(environmentVariables(rendered[name], one(rendered.service, 'ConfigMap')))
      // The service doesn't call its own URL, and signs URLs of the bucket without calling it.
      .filter(
        ([setting, value]) =>
          !/^(PUBLIC_URL|STORE_URL|FILES_S3_ENDPOINT)$/.test(setting) && value.includes('://'),
      )
      .map(([setting, value]) => [setting, new URL(value)] as const);

  it.each(['api', 'migrate'] as const)('%s may reach every URL of its settings, and DNS', (name) => {
    const found = addresses(name);
    expect(found.map(([setting]) => setting)).toContain('DATABASE_URL');
    for (const [setting, url] of found) {
      // The migration gets all settings of the service but uses only the database.
      if (name === 'migrate' && setting !== 'DATABASE_URL') continue;
      const port = { port: Number(url.port) || PORTS[url.protocol]! };
      expect([setting, rejections(manifests, pod(name), behind(url.hostname), port)]).toEqual([setting, []]);
    }
    for (const protocol of ['UDP', 'TCP'] as const)
      expect(rejections(manifests, pod(name), dns, { port: 53, protocol })).toEqual([]);
  });
  it('contains the chosen variant', () => {
    const names = addresses('api').map(([setting]) => setting);
    expect(names.includes('OTEL_EXPORTER_OTLP_ENDPOINT')).toBe(how === 'with traces');
    expect(names).toContain('REDIS_URL');
  });
  it('has all settings of a bucket if one is used', () => {
    const settings = loadContainerSettings(rendered.api, one(rendered.service, 'ConfigMap'));
    expect(settings).toMatchObject(
      /bucket/.test(how)
        ? {
            FILES_S3_ENDPOINT: 'https://s3.example.com',
            FILES_S3_BUCKET: expect.any(String),
            FILES_S3_SECRET_ACCESS_KEY: expect.any(String),
          }
        : { FILES_S3_BUCKET: undefined },
    );
    const mounted = rendered.api.volumeMounts.map(({ mountPath }) => mountPath);
    for (const { name, value } of rendered.api.env)
      if (name.startsWith('FILES_S3_') && name.endsWith('_FILE'))
        expect(mounted).toContain(value!.replace(/\/[^/]+$/, ''));
  });
  it('uses one database, the restored one if that is used', () => {
    const clusters = (['api', 'migrate'] as const)
      .flatMap(addresses)
      .filter(([, { protocol }]) => protocol === 'postgresql:')
      .map(([, { hostname }]) => findCluster(hostname).metadata.name);
    const expected = /restored/.test(how) ? 'gamewharf-db-restored' : 'gamewharf-db';
    expect(new Set(clusters)).toEqual(new Set([expected]));
  });
  it('calls each database by a name in its certificate', () => {
    for (const [, { protocol, hostname, searchParams }] of addresses('api')) {
      if (protocol !== 'postgresql:') continue;
      expect(searchParams.get('sslmode')).toBe('verify-full');
      const { spec, metadata } = findCluster(hostname);
      const names = [`${metadata.name}-rw`, ...spec.certificates.serverAltDNSNames];
      expect(names).toContain(hostname);
      expect(names).toContain(
        hostname === `${metadata.name}-rw` ? hostname : `${hostname}.${namespace()}.svc`,
      );
    }
  });
  it('lets every pooler reach its database, and DNS', () => {
    for (const { metadata, spec } of poolers()) {
      const from = poolerPod(metadata.name);
      expect(rejections(manifests, from, databasePod(spec.cluster.name), { port: 5432 })).toEqual([]);
      expect(rejections(manifests, from, dns, { port: 53, protocol: 'UDP' })).toEqual([]);
    }
  });
  it('lets the Ingress controller in, and Prometheus to all metrics', () => {
    const monitoring = { namespace: 'monitoring' };
    const cases: [Endpoint, Endpoint, Port][] = [
      [{ namespace: 'ingress-nginx' }, pod('api'), { port: 8080 }],
      [monitoring, pod('api'), { port: 9464 }],
      [monitoring, databasePod('gamewharf-db'), { port: 9187 }],
      ...poolers().map(({ metadata }): [Endpoint, Endpoint, Port] => [
        monitoring,
        poolerPod(metadata.name),
        { port: 9127 },
      ]),
    ];
    for (const [from, to, port] of cases)
      expect([port, rejections(manifests, from, to, port)]).toEqual([port, []]);
  });
  it('lets the service reach the internet only for webhooks and files put', () => {
    for (const address of ['203.0.113.7', '2001:db8::7'])
      expect(rejections(manifests, pod('api'), { address }, { port: 443 })).toEqual(
        /webhooks|write/.test(how) ? [] : ['egress'],
      );
  });

  it.each<[string, () => [Endpoint, Endpoint, Port]]>([
    ['the service to the database itself', () => [pod('api'), databasePod('gamewharf-db'), { port: 5432 }]],
    ['webhooks to a private address', () => [pod('api'), { address: '10.1.2.3' }, { port: 443 }]],
    [
      'webhooks to the metadata of the cloud',
      () => [pod('api'), { address: '169.254.169.254' }, { port: 443 }],
    ],
    ['webhooks to a private IPv6 address', () => [pod('api'), { address: 'fd00::1' }, { port: 443 }]],
    ['webhooks to another port', () => [pod('api'), { address: '203.0.113.7' }, { port: 25 }]],
    ['the migration to the internet', () => [pod('migrate'), { address: '203.0.113.7' }, { port: 443 }]],
    ['anyone to the migration', () => [pod('api'), pod('migrate'), { port: 8080 }]],
    [
      'the Ingress controller to the metrics',
      () => [{ namespace: 'ingress-nginx' }, pod('api'), { port: 9464 }],
    ],
    ['Prometheus to the public port', () => [{ namespace: 'monitoring' }, pod('api'), { port: 8080 }]],
    [
      'another namespace to the pooler',
      () => [{ namespace: 'elsewhere' }, poolerPod('gamewharf-db-pooler-rw'), { port: 5432 }],
    ],
    [
      'another pod of the namespace to the database',
      () => [{ namespace: namespace(), labels: { app: 'x' } }, databasePod('gamewharf-db'), { port: 5432 }],
    ],
  ])('rejects %s', (_, connection) => {
    expect(rejections(manifests, ...connection())).not.toEqual([]);
  });
});
