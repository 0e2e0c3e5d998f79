// The parts of other projects' resource definitions that deploy/kubernetes uses, as those projects document them:
// CloudNativePG 1.28 to 1.30, its Barman Cloud plugin, and the Prometheus operator. A field listed here is checked for
// its type and for being required; others are rejected, so a new field starts with a line here. Pod templates inside
// them, relabeling and the rules that their webhooks enforce are not covered.
type Schema = Record<string, unknown>;

const string: Schema = { type: 'string', minLength: 1 };
const integer: Schema = { type: 'integer', minimum: 0 };
const boolean: Schema = { type: 'boolean' };
const strings: Schema = { type: 'object', additionalProperties: string };
const list = (items: Schema): Schema => ({ type: 'array', items, minItems: 1 });
const enumSchema = (...values: string[]): Schema => ({ enum: values });
const object = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

const quantity: Schema = { type: 'string', pattern: '^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$' };
const quantities = object({ cpu: quantity, memory: quantity });
const resources = object({ requests: quantities, limits: quantities });
const secretKey = object({ name: string, key: string }, ['name', 'key']);
const reference = object({ name: string }, ['name']);
const selector = object({
  matchLabels: strings,
  matchExpressions: list(
    object({ key: string, operator: string, values: list(string) }, ['key', 'operator']),
  ),
});
const duration: Schema = { type: 'string', pattern: '^[0-9]+(ms|s|m|h)$' };
const storage = object({ size: quantity, resizeInUseVolumes: boolean, storageClass: string });

const resource = (apiVersion: string, kind: string, spec: Schema): [string, Schema] => [
  `${apiVersion}/${kind}`,
  object(
    {
      apiVersion: { const: apiVersion },
      kind: { const: kind },
      metadata: object({ name: string, namespace: string, labels: strings, annotations: strings }, ['name']),
      spec,
    },
    ['apiVersion', 'kind', 'metadata', 'spec'],
  ),
];

const barmanParameters = object({ barmanObjectName: string, serverName: string }, ['barmanObjectName']);

const cluster = object(
  {
    instances: { type: 'integer', minimum: 1 },
    imageName: string,
    enableSuperuserAccess: boolean,
    enablePDB: boolean,
    primaryUpdateStrategy: enumSchema('unsupervised', 'supervised'),
    primaryUpdateMethod: enumSchema('switchover', 'restart'),
    bootstrap: {
      ...object({
        initdb: object({ database: string, owner: string, encoding: string, dataChecksums: boolean }),
        recovery: object({
          source: string,
          database: string,
          owner: string,
          recoveryTarget: object({ targetTime: { type: 'string', pattern: '^[0-9-]+T[0-9:]+Z$' } }),
        }),
      }),
      maxProperties: 1,
    },
    externalClusters: list(
      object(
        {
          name: string,
          plugin: object({ name: string, parameters: barmanParameters }, ['name', 'parameters']),
        },
        ['name'],
      ),
    ),
    certificates: object({ serverAltDNSNames: list(string) }),
    postgresql: object({
      synchronous: object(
        {
          method: enumSchema('any', 'first'),
          number: { type: 'integer', minimum: 1 },
          dataDurability: enumSchema('required', 'preferred'),
          failoverQuorum: boolean,
        },
        ['method', 'number'],
      ),
      parameters: strings,
    }),
    affinity: object({
      enablePodAntiAffinity: boolean,
      podAntiAffinityType: enumSchema('required', 'preferred'),
      topologyKey: string,
    }),
    resources,
    storage,
    walStorage: storage,
    plugins: list(object({ name: string, isWALArchiver: boolean, parameters: barmanParameters }, ['name'])),
  },
  ['instances'],
);

const pooler = object(
  {
    cluster: reference,
    type: enumSchema('rw', 'ro', 'r'),
    instances: integer,
    pgbouncer: object({ poolMode: enumSchema('session', 'transaction'), parameters: strings }),
    template: object({
      spec: {
        type: 'object',
        required: ['containers'],
        properties: {
          affinity: { type: 'object' },
          containers: { type: 'array', items: object({ name: string, resources }, ['name']) },
        },
        additionalProperties: false,
      },
    }),
  },
  ['cluster', 'pgbouncer'],
);

const scheduledBackup = object(
  {
    schedule: { type: 'string', pattern: '^\\S+( \\S+){5}$' },
    immediate: boolean,
    backupOwnerReference: enumSchema('none', 'self', 'cluster'),
    cluster: reference,
    method: enumSchema('volumeSnapshot', 'plugin'),
    pluginConfiguration: object({ name: string }, ['name']),
  },
  ['schedule', 'cluster'],
);

const objectStore = object(
  {
    retentionPolicy: { type: 'string', pattern: '^[1-9][0-9]*[dwm]$' },
    configuration: object(
      {
        destinationPath: string,
        endpointURL: string,
        s3Credentials: object({ accessKeyId: secretKey, secretAccessKey: secretKey, region: secretKey }),
        wal: object({
          compression: enumSchema('gzip', 'bzip2', 'lz4', 'snappy', 'xz', 'zstd'),
          maxParallel: integer,
        }),
        data: object({ compression: enumSchema('gzip', 'bzip2', 'lz4', 'snappy'), jobs: integer }),
      },
      ['destinationPath'],
    ),
  },
  ['configuration'],
);

const endpoint = object({ port: string, path: string, interval: duration, scrapeTimeout: duration });

export const customResources: Record<string, Schema> = Object.fromEntries([
  resource('postgresql.cnpg.io/v1', 'Cluster', cluster),
  resource('postgresql.cnpg.io/v1', 'Pooler', pooler),
  resource('postgresql.cnpg.io/v1', 'ScheduledBackup', scheduledBackup),
  resource('barmancloud.cnpg.io/v1', 'ObjectStore', objectStore),
  resource(
    'monitoring.coreos.com/v1',
    'ServiceMonitor',
    object({ selector, endpoints: list(endpoint) }, ['selector', 'endpoints']),
  ),
  resource(
    'monitoring.coreos.com/v1',
    'PodMonitor',
    object({ selector, podMetricsEndpoints: list(endpoint) }, ['selector', 'podMetricsEndpoints']),
  ),
]);
