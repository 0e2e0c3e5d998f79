import { readdirSync } from 'node:fs';
import path from 'node:path';
import { kubernetes, type Manifest, validateManifest } from '../support/manifests';
import {
  type Environment,
  ENVIRONMENTS,
  renderEnvironment,
  one,
  only,
  withKubectl,
  variable,
} from '../support/overlays';

withKubectl.describe.each(ENVIRONMENTS)('%s', (environment) => {
  let rendered: Environment;
  beforeAll(() => {
    rendered = renderEnvironment(environment);
  });

  it('every object has an existing kind and version, known fields, and all required ones', async () => {
    for (const manifest of rendered.everything)
      expect([manifest.metadata.name, await validateManifest(manifest)]).toEqual([
        manifest.metadata.name,
        [],
      ]);
  });
});

withKubectl.describe('both environments', () => {
  let staging: Manifest[];
  let production: Manifest[];
  beforeAll(() => {
    staging = renderEnvironment('staging').everything;
    production = renderEnvironment('production').everything;
  });

  it('share no namespace, host or backup location', () => {
    const places = (all: Manifest[]) => [
      one(all, 'Namespace').metadata.name,
      ...one(all, 'Ingress').spec.rules.map(({ host }) => host),
      one(all, 'ObjectStore').spec.configuration.destinationPath,
    ];
    expect(places(staging).filter((place) => places(production).includes(place))).toEqual([]);
  });
  it('consist of the same objects, so that staging tests what production runs', () => {
    const names = (all: Manifest[]) =>
      all
        .map(({ kind, metadata }) =>
          kind === 'ConfigMap' || kind === 'Namespace' ? kind : `${kind} ${metadata.name}`,
        )
        .sort();
    expect(names(staging)).toEqual(names(production));
  });
  it('differ where it counts: production has at least three replicas on separate machines with shared limits', () => {
    expect(one(production, 'HorizontalPodAutoscaler').spec.minReplicas).toBeGreaterThanOrEqual(3);
    const { spec } = one(production, 'Deployment').spec.template;
    expect(spec.topologySpreadConstraints[1]?.whenUnsatisfiable).toBe('DoNotSchedule');
    expect(variable(only(spec.containers), 'REDIS_URL')?.valueFrom?.secretKeyRef?.optional).toBe(false);
  });
});

describe('the schema check itself', () => {
  const service = (change: object) =>
    ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'x' },
      spec: { ports: [{ port: 80 }] },
      ...change,
    }) as unknown as Manifest;
  const pooler = (spec: object) =>
    ({
      apiVersion: 'postgresql.cnpg.io/v1',
      kind: 'Pooler',
      metadata: { name: 'x' },
      spec,
    }) as unknown as Manifest;

  it('accepts valid objects', async () => {
    expect(await validateManifest(service({}))).toEqual([]);
    expect(
      await validateManifest(pooler({ cluster: { name: 'db' }, pgbouncer: { poolMode: 'transaction' } })),
    ).toEqual([]);
  });
  it.each([
    ['a misspelled field', service({ spec: { ports: [{ port: 80, targetport: 8080 }] } })],
    ['a missing field', service({ spec: { ports: [{ name: 'http' }] } })],
    ['a wrong type', service({ spec: { ports: 80 } })],
    ['a removed version', service({ apiVersion: 'policy/v1beta1', kind: 'PodDisruptionBudget', spec: {} })],
    ['an unknown kind', service({ kind: 'Servise' })],
    ['a custom resource without a required field', pooler({ cluster: { name: 'db' } })],
    [
      'a custom resource with a misspelled field',
      pooler({ cluster: { name: 'db' }, pgbouncer: { poolmode: 'transaction' } }),
    ],
    [
      'a custom resource with a value outside its list',
      pooler({ cluster: { name: 'db' }, pgbouncer: { poolMode: 'statement' } }),
    ],
  ])('rejects %s', async (_, manifest) => {
    expect(await validateManifest(manifest)).not.toEqual([]);
  });
});

it('these tests render every kustomization in deploy/kubernetes', () => {
  const found = readdirSync(kubernetes, { recursive: true, encoding: 'utf8' })
    .filter((file) => path.basename(file) === 'kustomization.yaml')
    .map((file) => path.dirname(file).split(path.sep).join('/'))
    .filter((folder) => folder.startsWith('overlays/') && !folder.endsWith('/release'));
  expect(found.sort()).toEqual(
    [
      'production',
      'production/database',
      'production/migrate',
      'production/restore',
      'staging',
      'staging/database',
      'staging/migrate',
    ].map((name) => `overlays/${name}`),
  );
});
