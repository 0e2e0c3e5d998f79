import {
  cpSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  appendFileSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SECRET_NAMES, SETTING_NAMES, loadSettings } from '../src/config/settings';
import {
  type Container,
  type Manifest,
  type NetworkRule,
  type PodSpec,
  kubectlIsThere,
  kubernetes,
  problemsOf,
  render,
  selects,
} from './support/manifests';

const overlay = (...names: string[]) => path.join(kubernetes, 'overlays', ...names);
const suite = kubectlIsThere ? describe : describe.skip;
if (!kubectlIsThere)
  console.warn('kubectl is not installed: the manifests are not rendered and not checked.');

function one(manifests: Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.filter(({ kind: k, metadata }) => k === kind && (!name || metadata.name === name));
  if (found.length !== 1) throw new Error(`${found.length} of ${kind} ${name ?? ''}`);
  return found[0] as Manifest;
}
const only = <T>(list: T[]): T => {
  if (list.length !== 1) throw new Error(`${list.length} where one is expected`);
  return list[0] as T;
};
const variable = (container: Container, name: string) => container.env.find((entry) => entry.name === name);
const databaseUrl = (container: Container) =>
  new URL((variable(container, 'DATABASE_URL')?.value ?? '').replace(/\$\(\w+\)/g, 'x'));
const mebibytes = (quantity: string) => {
  const [, number, unit] = /^(\d+)(Mi|Gi|MB|GB)$/.exec(quantity) ?? [];
  return Number(number) * (unit?.startsWith('G') ? 1024 : 1);
};
const allows = (
  rules: NetworkRule[] | undefined,
  side: 'from' | 'to',
  labels: Record<string, string>,
  port: string | number,
) =>
  (rules ?? []).some(
    (rule) =>
      rule.ports.some((entry) => entry.port === port) &&
      (rule[side] ?? []).some(
        (peer) => !peer.namespaceSelector && peer.podSelector && selects(peer.podSelector, labels),
      ),
  );

suite.each(['staging', 'production'])('%s', (environment) => {
  let service: Manifest[];
  let migration: Manifest[];
  let database: Manifest[];
  let everything: Manifest[];
  let deployment: Manifest;
  let job: Manifest;
  let pods: { labels: Record<string, string>; spec: PodSpec }[];
  let containers: Container[];
  let api: Container;
  let migrate: Container;

  beforeAll(() => {
    service = render(overlay(environment));
    migration = render(overlay(environment, 'migrate'));
    database = render(overlay(environment, 'database'));
    everything = [...service, ...migration, ...database];
    deployment = one(service, 'Deployment');
    job = one(migration, 'Job');
    pods = [deployment, job].map(({ spec }) => ({
      labels: spec.template.metadata.labels,
      spec: spec.template.spec,
    }));
    containers = pods.flatMap(({ spec }) => [...(spec.initContainers ?? []), ...spec.containers]);
    api = only(deployment.spec.template.spec.containers);
    migrate = only(job.spec.template.spec.containers);
  });

  /** What the service makes of this environment, with something likely in place of each secret. */
  const settingsOf = ({ env }: Container) => {
    const secret = (name: string) => (name === 'REDIS_URL' ? 'redis://redis:6379' : 'x'.repeat(64));
    const given = env.map(({ name, value }) => [
      name.replace(/_FILE$/, ''),
      value === undefined || name.endsWith('_FILE') ? secret(name) : value.replace(/\$\(\w+\)/g, 'x'),
    ]);
    return loadSettings({ ...one(service, 'ConfigMap').data, ...Object.fromEntries(given) });
  };

  describe('schemas', () => {
    it('every object is of a kind and version that exists, with known fields, and none missing', async () => {
      for (const manifest of everything)
        expect([manifest.metadata.name, await problemsOf(manifest)]).toEqual([manifest.metadata.name, []]);
    });
  });

  describe('containers', () => {
    it('run as a user that is not root', () => {
      for (const { spec } of pods) {
        expect(spec.securityContext.runAsNonRoot).toBe(true);
        expect(spec.securityContext.runAsUser).toBeGreaterThan(0);
      }
    });
    it('cannot write to their own files', () => {
      for (const container of containers) expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
    });
    it('are confined by the default seccomp profile', () => {
      for (const { spec } of pods) expect(spec.securityContext.seccompProfile.type).toBe('RuntimeDefault');
    });
    it('hold no Linux capability', () => {
      for (const { securityContext } of containers)
        expect(securityContext.capabilities).toEqual({ drop: ['ALL'] });
    });
    it('cannot gain privileges', () => {
      for (const { securityContext } of containers) {
        expect(securityContext.allowPrivilegeEscalation).toBe(false);
        expect(securityContext.privileged).toBe(false);
      }
    });
    it('get no token for the Kubernetes API', () => {
      for (const { spec } of pods) expect(spec.automountServiceAccountToken).toBe(false);
      expect(one(service, 'ServiceAccount').automountServiceAccountToken).toBe(false);
    });
    it('get no environment variables made of the Services around them', () => {
      for (const { spec } of pods) expect(spec.enableServiceLinks).toBe(false);
    });
    it('share nothing with their host', () => {
      for (const { spec } of pods) {
        expect([spec.hostNetwork, spec.hostPID, spec.hostIPC]).toEqual([undefined, undefined, undefined]);
        for (const volume of spec.volumes) expect(volume.hostPath).toBeUndefined();
      }
      for (const { ports } of containers)
        for (const port of ports ?? []) expect(port.hostPort).toBeUndefined();
    });
    it('run an image of an exact version', () => {
      for (const { image } of containers)
        expect(image).toMatch(/^[\w.-]+\.[\w./-]+(:\d+\.\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})$/);
    });
    it('run the same image with the same settings in the service and in its migration', () => {
      expect(migrate.image).toBe(api.image);
      expect(migrate.envFrom).toEqual(api.envFrom);
      expect(one(migration, 'ConfigMap')).toEqual(one(service, 'ConfigMap'));
    });
    it('ask for CPU and memory, and have a ceiling of memory', () => {
      for (const { resources } of containers) {
        expect(resources.requests).toMatchObject({ cpu: expect.any(String), memory: expect.any(String) });
        expect(mebibytes(resources.limits.memory ?? '')).toBeGreaterThanOrEqual(
          mebibytes(resources.requests.memory ?? ''),
        );
      }
    });
    it('are never throttled while their machine has idle cores', () => {
      for (const { resources } of containers) expect(resources.limits.cpu).toBeUndefined();
    });
    it('mount everything read-only but a bounded /tmp', () => {
      for (const { spec } of pods) {
        const writable = spec.containers
          .flatMap(({ volumeMounts }) => volumeMounts)
          .filter(({ readOnly }) => !readOnly);
        for (const { name, mountPath } of writable) {
          expect(mountPath).toBe('/tmp');
          expect(spec.volumes.find((volume) => volume.name === name)?.emptyDir?.sizeLimit).toMatch(/^\d+Mi$/);
        }
      }
    });
  });

  describe('secrets', () => {
    it('are never in the manifests', () => {
      expect(everything.filter(({ kind }) => kind === 'Secret')).toEqual([]);
    });
    it('reach a container as a reference or as a file, never as a literal', () => {
      for (const { name, value } of containers.flatMap(({ env }) => env)) {
        if (value === undefined || name.endsWith('_FILE')) continue;
        expect(name).not.toMatch(/TOKEN|PEPPER|SECRET|PASSWORD|PRIVATE/);
        expect(value).not.toMatch(/:\/\/[^/@$]*:[^/@$]+@/);
      }
    });
    it('are not among the settings', () => {
      for (const [key, value] of Object.entries(one(service, 'ConfigMap').data ?? {})) {
        expect(key).not.toMatch(/TOKEN|PEPPER|SECRET|PASSWORD|DATABASE_URL|REDIS_URL/);
        expect(value).not.toContain('@');
      }
    });
    it('named by a _FILE setting are mounted where it says', () => {
      for (const { spec } of pods) {
        for (const { env, volumeMounts } of spec.containers) {
          for (const { name, value } of env.filter((entry) => entry.name.endsWith('_FILE'))) {
            const mount = volumeMounts.find(({ mountPath }) => value?.startsWith(`${mountPath}/`));
            const items = spec.volumes.find((volume) => volume.name === mount?.name)?.secret?.items ?? [];
            expect([name, items.map((item) => `${mount?.mountPath}/${item.path}`)]).toEqual([
              name,
              expect.arrayContaining([value]),
            ]);
          }
        }
      }
    });
    it('of the database authority stay out of the pods: the certificate only, not its key', () => {
      for (const { spec } of pods) {
        const authority = spec.volumes.find(({ secret }) => secret?.secretName.endsWith('-ca'));
        expect(authority?.secret?.items).toEqual([{ key: 'ca.crt', path: 'ca.crt' }]);
      }
    });
    it('are all named in docs/operations.md', () => {
      const page = readFileSync(path.join(kubernetes, '..', '..', 'docs', 'operations.md'), 'utf8');
      const names = [
        ...containers.flatMap(({ env }) => env.map(({ valueFrom }) => valueFrom?.secretKeyRef?.name)),
        ...pods.flatMap(({ spec }) => spec.volumes.map(({ secret }) => secret?.secretName)),
        ...one(service, 'Ingress').spec.tls.map(({ secretName }) => secretName),
        ...Object.values(one(database, 'ObjectStore').spec.configuration.s3Credentials).map(
          ({ name }) => name,
        ),
      ];
      for (const name of new Set(names)) if (name) expect(page).toContain(`\`${name}\``);
    });
  });

  describe('settings', () => {
    it('are production settings', () => {
      for (const container of containers) expect(variable(container, 'NODE_ENV')?.value).toBe('production');
    });
    it('never load demo data', () => {
      expect(one(service, 'ConfigMap').data).toMatchObject({ DEMO_DATA: 'false' });
    });
    it('have a name made of their content, so that a change rolls out', () => {
      const { name } = one(service, 'ConfigMap').metadata;
      expect(name).toMatch(/^gamewharf-settings-[a-z0-9]{10}$/);
      expect(api.envFrom).toEqual([{ configMapRef: { name } }]);
    });
    it('use only variables that were declared before', () => {
      for (const { env } of containers) {
        env.forEach(({ name, value }, index) => {
          const declared = env.slice(0, index).map((entry) => entry.name);
          for (const [, used] of value?.matchAll(/\$\((\w+)\)/g) ?? [])
            expect([name, declared]).toEqual([name, expect.arrayContaining([used])]);
        });
      }
    });
    it('are ones that the service has', () => {
      const settings = [...SETTING_NAMES, ...SECRET_NAMES.map((name) => `${name}_FILE`)];
      expect(
        Object.keys(one(service, 'ConfigMap').data ?? {}).filter((name) => !settings.includes(name)),
      ).toEqual([]);
      for (const { env } of containers) {
        const partsOfOthers = env.flatMap(({ value }) =>
          [...(value?.matchAll(/\$\((\w+)\)/g) ?? [])].map(([, name]) => name),
        );
        const unknown = env.filter(({ name }) => !settings.includes(name) && !partsOfOthers.includes(name));
        expect(unknown.map(({ name }) => name)).toEqual([]);
      }
    });
    it('are accepted by the service', () => {
      expect(() => settingsOf(api)).not.toThrow();
      expect(() => settingsOf(migrate)).not.toThrow();
    });
    it('listen on the ports that the container declares', () => {
      const ports = new Map(api.ports?.map(({ name, containerPort }) => [name, String(containerPort)]));
      expect(variable(api, 'PORT')?.value).toBe(ports.get('http'));
      expect(variable(api, 'METRICS_PORT')?.value).toBe(ports.get('metrics'));
    });
    it('give the public address of the API the host of the Ingress', () => {
      const hosts = one(service, 'Ingress').spec.rules.map(({ host }) => `https://${host}`);
      const { PUBLIC_URL, STORE_URL } = one(service, 'ConfigMap').data ?? {};
      expect([PUBLIC_URL, STORE_URL]).toEqual(hosts);
    });
  });

  describe('rollout', () => {
    it('never has fewer replicas than before it began', () => {
      expect(deployment.spec.strategy).toMatchObject({
        type: 'RollingUpdate',
        rollingUpdate: { maxUnavailable: 0 },
      });
      expect(deployment.spec.strategy.rollingUpdate.maxSurge).not.toBe(0);
    });
    it('lets load balancers forget a pod before it starts to drain, and leaves time to drain', () => {
      const sleep = api.lifecycle?.preStop.sleep.seconds ?? 0;
      expect(sleep).toBeGreaterThanOrEqual(3);
      // Five seconds more for the last answers, and as much again to close connections.
      const needed = sleep + settingsOf(api).DRAIN_SECONDS! + 10;
      expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
    });
    it('sends requests only to a pod that is ready', () => {
      expect(api.readinessProbe?.httpGet).toEqual({ path: '/health/ready', port: 'http' });
    });
    it('does not restart a pod because the database is away', () => {
      expect(api.livenessProbe?.httpGet).toEqual({ path: '/health/live', port: 'http' });
      expect(api.startupProbe?.httpGet).toEqual({ path: '/health/live', port: 'http' });
    });
    it('waits for a hung database longer than the service needs to say so', () => {
      for (const probe of [api.readinessProbe, api.livenessProbe])
        expect(probe?.timeoutSeconds).toBeGreaterThanOrEqual(3);
    });
    it('spreads replicas over zones and machines, each release by itself', () => {
      const constraints = deployment.spec.template.spec.topologySpreadConstraints;
      expect(constraints.map(({ topologyKey }) => topologyKey)).toEqual([
        'topology.kubernetes.io/zone',
        'kubernetes.io/hostname',
      ]);
      for (const constraint of constraints) {
        expect(constraint).toMatchObject({ maxSkew: 1, matchLabelKeys: ['pod-template-hash'] });
        expect(selects(constraint.labelSelector, deployment.spec.template.metadata.labels)).toBe(true);
      }
    });
    it('leaves the number of replicas to the autoscaler', () => {
      const { scaleTargetRef, minReplicas, maxReplicas } = one(service, 'HorizontalPodAutoscaler').spec;
      expect(deployment.spec.replicas).toBeUndefined();
      expect(scaleTargetRef).toMatchObject({ kind: 'Deployment', name: deployment.metadata.name });
      expect(minReplicas).toBeGreaterThanOrEqual(2);
      expect(maxReplicas).toBeGreaterThan(minReplicas);
    });
    it('keeps a replica through the draining of machines, and lets machines drain', () => {
      const budget = one(service, 'PodDisruptionBudget').spec;
      expect(selects(budget.selector, deployment.spec.template.metadata.labels)).toBe(true);
      expect(budget.maxUnavailable).toBeGreaterThanOrEqual(1);
      expect(budget.maxUnavailable).toBeLessThan(one(service, 'HorizontalPodAutoscaler').spec.minReplicas);
    });
    it('has its migration run before, a bounded number of times and no longer than a bound', () => {
      expect(migrate.command).toEqual(['node', 'dist/src/cli.js', 'migrate']);
      expect(job.spec.template.spec.restartPolicy).toBe('Never');
      expect(job.spec.backoffLimit).toBeLessThanOrEqual(5);
      expect(job.spec.activeDeadlineSeconds).toBeLessThanOrEqual(3600);
      expect(job.metadata.annotations).toMatchObject({ 'argocd.argoproj.io/hook': 'PreSync' });
    });
    it('can be deleted without the data: neither namespace nor database is part of it', () => {
      const kinds = [...service, ...migration].map(({ kind }) => kind);
      for (const kind of ['Namespace', 'Cluster', 'PersistentVolumeClaim', 'ObjectStore'])
        expect(kinds).not.toContain(kind);
    });
  });

  describe('network', () => {
    const policy = (name: string) => one(everything, 'NetworkPolicy', name).spec;
    const poolerPod = { 'cnpg.io/poolerName': 'gamewharf-db-pooler-rw' };
    const databasePod = { 'cnpg.io/cluster': 'gamewharf-db' };

    it('is closed to everything that no policy opens', () => {
      expect(policy('default-deny')).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
    });
    it('has a policy of its own for every pod, in both directions', () => {
      for (const labels of [...pods.map((pod) => pod.labels), poolerPod, databasePod]) {
        const own = everything.filter(
          ({ kind, metadata, spec }) =>
            kind === 'NetworkPolicy' && metadata.name !== 'default-deny' && selects(spec.podSelector, labels),
        );
        expect(only(own).spec.policyTypes).toEqual(['Ingress', 'Egress']);
      }
    });
    it('reaches the DNS of the cluster, by exactly its labels', () => {
      for (const { metadata, spec } of everything.filter(({ kind }) => kind === 'NetworkPolicy')) {
        if (metadata.name === 'default-deny') continue;
        const dns = only((spec.egress ?? []).filter(({ ports }) => ports.some(({ port }) => port === 53)));
        expect(dns.to).toEqual([
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
            podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
          },
        ]);
        expect(dns.ports.map(({ protocol }) => protocol).sort()).toEqual(['TCP', 'UDP']);
      }
    });
    it('lets the service reach the pooler and not the database', () => {
      expect(allows(policy('gamewharf').egress, 'to', poolerPod, 5432)).toBe(true);
      expect(allows(policy('gamewharf').egress, 'to', databasePod, 5432)).toBe(false);
      const { labels } = pods[0] as { labels: Record<string, string> };
      expect(allows(policy('gamewharf-db-pooler').ingress, 'from', labels, 5432)).toBe(true);
      expect(allows(policy('gamewharf-db').ingress, 'from', labels, 5432)).toBe(false);
    });
    it('lets the migration reach the database and accepts nothing from anybody', () => {
      const { labels } = pods[1] as { labels: Record<string, string> };
      expect(allows(policy('gamewharf-migrate').egress, 'to', databasePod, 5432)).toBe(true);
      expect(allows(policy('gamewharf-db').ingress, 'from', labels, 5432)).toBe(true);
      expect(policy('gamewharf-migrate').ingress).toBeUndefined();
    });
    it('lets the pooler reach the database', () => {
      expect(allows(policy('gamewharf-db-pooler').egress, 'to', databasePod, 5432)).toBe(true);
      expect(allows(policy('gamewharf-db').ingress, 'from', poolerPod, 5432)).toBe(true);
    });
    it('opens the metrics to the monitoring namespace alone', () => {
      const open = (policy('gamewharf').ingress ?? []).filter(({ ports }) =>
        ports.some(({ port }) => port === 'metrics'),
      );
      expect(only(open).from).toEqual([
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } },
      ]);
    });
    it('names no port that the container does not have', () => {
      const names = api.ports?.map(({ name }) => name);
      for (const { ports } of policy('gamewharf').ingress ?? [])
        for (const { port } of ports) expect(names).toContain(port);
      for (const { spec } of service.filter(({ kind }) => kind === 'Service'))
        for (const { targetPort } of spec.ports) expect(names).toContain(targetPort);
    });
    it('has Services that select the pods of the service and not those of the migration', () => {
      for (const { spec } of service.filter(({ kind }) => kind === 'Service')) {
        expect(pods.map(({ labels }) => selects({ matchLabels: spec.selector }, labels))).toEqual([
          true,
          false,
        ]);
      }
    });
    it('is entered by TLS on every host', () => {
      const { tls, rules } = one(service, 'Ingress').spec;
      expect(tls.flatMap(({ hosts }) => hosts).sort()).toEqual(rules.map(({ host }) => host).sort());
    });
    it('leads from outside to the public port alone', () => {
      for (const { http } of one(service, 'Ingress').spec.rules) {
        for (const { backend } of http.paths)
          expect(backend.service).toEqual({ name: 'gamewharf', port: { name: 'http' } });
      }
      expect(one(service, 'Service', 'gamewharf').spec.ports.map(({ targetPort }) => targetPort)).toEqual([
        'http',
      ]);
    });
    it('takes over nothing of the host of the store but the legacy API', () => {
      const legacy = one(service, 'Ingress').spec.rules[1];
      expect(legacy?.http.paths.map(({ path: prefix }) => prefix)).toEqual(['/api/1']);
    });
    it('has its metrics scraped from the Service that carries them', () => {
      const { selector, endpoints } = one(service, 'ServiceMonitor').spec;
      const scraped = service.filter(
        ({ kind, metadata }) => kind === 'Service' && selects(selector, metadata.labels ?? {}),
      );
      expect(scraped.map(({ metadata }) => metadata.name)).toEqual(['gamewharf-metrics']);
      expect(only(scraped).spec.ports.map(({ name }) => name)).toContain(only(endpoints).port);
    });
  });

  describe('database', () => {
    const cluster = () => one(database, 'Cluster').spec;
    const pooler = () => one(database, 'Pooler').spec;

    it('has three instances on three machines', () => {
      expect(cluster().instances).toBe(3);
      expect(cluster().affinity).toEqual({
        enablePodAntiAffinity: true,
        podAntiAffinityType: environment === 'production' ? 'required' : 'preferred',
        topologyKey: 'kubernetes.io/hostname',
      });
    });
    it('acknowledges nothing that only one machine has, and promotes no machine that misses any of it', () => {
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
    it('gives PostgreSQL no more shared memory than half of what its pod has', () => {
      const { requests } = cluster().resources as { requests: { memory: string } };
      expect(mebibytes(cluster().postgresql.parameters.shared_buffers ?? '')).toBeLessThanOrEqual(
        mebibytes(requests.memory) / 2,
      );
    });
    it('archives every change and is backed up every day, into a store that is there', () => {
      const store = one(database, 'ObjectStore');
      expect(only(cluster().plugins)).toMatchObject({
        isWALArchiver: true,
        parameters: { barmanObjectName: store.metadata.name },
      });
      const backup = one(database, 'ScheduledBackup').spec;
      expect(backup).toMatchObject({
        method: 'plugin',
        cluster: { name: 'gamewharf-db' },
        pluginConfiguration: { name: only(cluster().plugins).name },
      });
      expect(backup.schedule).toMatch(/^\d+ \d+ \d+ \* \* \*$/);
    });
    it('is reached through a pooler in transaction mode that follows prepared statements', () => {
      expect(pooler().cluster.name).toBe(one(database, 'Cluster').metadata.name);
      expect(pooler().pgbouncer.poolMode).toBe('transaction');
      expect(Number(pooler().pgbouncer.parameters.max_prepared_statements)).toBeGreaterThan(0);
      expect(databaseUrl(api).hostname).toBe(one(database, 'Pooler').metadata.name);
    });
    it('is migrated without the pooler, which would lose the lock', () => {
      expect(databaseUrl(migrate).hostname).toBe('gamewharf-db-rw');
    });
    it('proves its name to its clients, with a certificate that has that name', () => {
      for (const container of containers) {
        const url = databaseUrl(container);
        expect(url.searchParams.get('sslmode')).toBe('verify-full');
        const certificate = url.searchParams.get('sslrootcert') ?? '';
        expect(container.volumeMounts.map(({ mountPath }) => `${mountPath}/ca.crt`)).toContain(certificate);
        expect(['gamewharf-db-rw', ...cluster().certificates.serverAltDNSNames]).toContain(url.hostname);
      }
    });
    it('has room for all connections of its poolers, with some left for migrations and people', () => {
      const connections = pooler().instances * Number(pooler().pgbouncer.parameters.default_pool_size);
      expect(connections).toBeLessThanOrEqual(Number(cluster().postgresql.parameters.max_connections) - 20);
    });
    it('has poolers with room for all replicas, one pooler away', () => {
      const clients = (pooler().instances - 1) * Number(pooler().pgbouncer.parameters.max_client_conn);
      const perReplica = settingsOf(api).DATABASE_POOL_SIZE;
      expect(one(service, 'HorizontalPodAutoscaler').spec.maxReplicas * perReplica).toBeLessThanOrEqual(
        clients,
      );
    });
    it('lives in a namespace where only restricted pods may run', () => {
      expect(one(database, 'Namespace').metadata.labels).toMatchObject({
        'pod-security.kubernetes.io/enforce': 'restricted',
      });
    });
    it('shares that namespace with the service and with nothing else', () => {
      const { name } = one(database, 'Namespace').metadata;
      for (const { kind, metadata } of everything)
        if (kind !== 'Namespace') expect(metadata.namespace).toBe(name);
    });
  });
});

suite('both environments', () => {
  const manifests = (environment: string) =>
    [[environment], [environment, 'migrate'], [environment, 'database']].flatMap((names) =>
      render(overlay(...names)),
    );
  let staging: Manifest[];
  let production: Manifest[];
  beforeAll(() => {
    staging = manifests('staging');
    production = manifests('production');
  });

  it('share no namespace, no host and no place for backups', () => {
    const places = (all: Manifest[]) => [
      one(all, 'Namespace').metadata.name,
      ...one(all, 'Ingress').spec.rules.map(({ host }) => host),
      one(all, 'ObjectStore').spec.configuration.destinationPath,
    ];
    expect(places(staging).filter((place) => places(production).includes(place))).toEqual([]);
  });
  it('consist of the same objects, so that staging tries what production runs', () => {
    const names = (all: Manifest[]) =>
      all
        .map(({ kind, metadata }) =>
          kind === 'ConfigMap' || kind === 'Namespace' ? kind : `${kind} ${metadata.name}`,
        )
        .sort();
    expect(names(staging)).toEqual(names(production));
  });
  it('differ where it counts: production has three replicas at least, on machines of their own, with shared limits', () => {
    expect(one(production, 'HorizontalPodAutoscaler').spec.minReplicas).toBeGreaterThanOrEqual(3);
    const { spec } = one(production, 'Deployment').spec.template;
    expect(spec.topologySpreadConstraints[1]?.whenUnsatisfiable).toBe('DoNotSchedule');
    expect(variable(only(spec.containers), 'REDIS_URL')?.valueFrom?.secretKeyRef?.optional).toBe(false);
  });
});

suite('restoring production', () => {
  let restored: Manifest[];
  beforeAll(() => {
    restored = render(overlay('production', 'restore'));
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
    const first = one(render(overlay('production', 'database')), 'ObjectStore').spec.configuration
      .destinationPath;
    expect(one(restored, 'ObjectStore').spec.configuration.destinationPath).not.toBe(first);
  });
  it('is configured as the first database is', () => {
    const first = one(render(overlay('production', 'database')), 'Cluster').spec;
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
    const names = render(overlay('production', 'database')).map(
      ({ kind, metadata }) => `${kind} ${metadata.name}`,
    );
    for (const { kind, metadata } of restored) expect(names).not.toContain(`${kind} ${metadata.name}`);
  });
  it('can be reached by the service and by its migration', () => {
    const egress = (folder: string, name: string) =>
      one(render(overlay('production', folder)), 'NetworkPolicy', name).spec.egress;
    const { metadata } = one(restored, 'Pooler');
    expect(allows(egress('', 'gamewharf'), 'to', { 'cnpg.io/poolerName': metadata.name }, 5432)).toBe(true);
    const labels = { 'cnpg.io/cluster': one(restored, 'Cluster').metadata.name };
    expect(allows(egress('migrate', 'gamewharf-migrate'), 'to', labels, 5432)).toBe(true);
  });
  it('is put in use by one line, for the service and the migration, whole', () => {
    const copy = mkdtempSync(path.join(tmpdir(), 'gamewharf-deploy-'));
    try {
      cpSync(kubernetes, copy, { recursive: true });
      const release = path.join(copy, 'overlays', 'production', 'release', 'kustomization.yaml');
      appendFileSync(release, 'components: [../../../components/restored-database]\n');
      for (const names of [[], ['migrate']]) {
        const all = render(path.join(copy, 'overlays', 'production', ...names));
        const { spec } = one(all, names.length ? 'Job' : 'Deployment').spec.template;
        const container = only(spec.containers);
        const declared = container.env.map(({ name }) => name);
        expect(declared.indexOf('DATABASE_URL')).toBeGreaterThan(
          Math.max(declared.indexOf('DB_USER'), declared.indexOf('DB_PASSWORD')),
        );
        expect(databaseUrl(container).hostname).toBe(
          names.length ? 'gamewharf-db-restored-rw' : 'gamewharf-db-restored-pooler-rw',
        );
        for (const name of ['DB_USER', 'DB_PASSWORD'])
          expect(variable(container, name)?.valueFrom?.secretKeyRef?.name).toBe('gamewharf-db-restored-app');
        expect(spec.volumes.find(({ name }) => name === 'database-ca')?.secret?.secretName).toBe(
          'gamewharf-db-restored-ca',
        );
      }
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });
});

suite('reads from the standbys', () => {
  it('are turned on by one line, through a pooler of their own, with the same credentials', async () => {
    const copy = mkdtempSync(path.join(tmpdir(), 'gamewharf-deploy-'));
    try {
      cpSync(kubernetes, copy, { recursive: true });
      const file = path.join(copy, 'overlays', 'production', 'kustomization.yaml');
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replace('components:\n', 'components:\n  - ../../components/standby-reads\n'));
      const all = render(path.join(copy, 'overlays', 'production'));
      for (const manifest of all) expect(await problemsOf(manifest)).toEqual([]);
      const pooler = one(all, 'Pooler');
      expect(pooler.metadata.namespace).toBe('gamewharf');
      expect(pooler.spec.type).toBe('ro');
      const cluster = one(render(overlay('production', 'database')), 'Cluster');
      expect(pooler.spec.cluster.name).toBe(cluster.metadata.name);
      expect(pooler.spec.instances * Number(pooler.spec.pgbouncer.parameters.default_pool_size)).toBeLessThan(
        Number(cluster.spec.postgresql.parameters.max_connections),
      );
      const { env } = only(one(all, 'Deployment').spec.template.spec.containers);
      const read = new URL(env.at(-1)!.value!.replace(/\$\(\w+\)/g, 'x'));
      expect([env.at(-1)!.name, read.hostname]).toEqual(['DATABASE_READ_URL', pooler.metadata.name]);
      expect(SETTING_NAMES).toContain('DATABASE_READ_URL');
      const main = env.find(({ name }) => name === 'DATABASE_URL')!.value!;
      expect(env.at(-1)!.value).toBe(main.replace('pooler-rw', 'pooler-ro'));
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
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

  it('accepts what is right', async () => {
    expect(await problemsOf(service({}))).toEqual([]);
    expect(
      await problemsOf(pooler({ cluster: { name: 'db' }, pgbouncer: { poolMode: 'transaction' } })),
    ).toEqual([]);
  });
  it.each([
    ['a misspelt field', service({ spec: { ports: [{ port: 80, targetport: 8080 }] } })],
    ['a missing field', service({ spec: { ports: [{ name: 'http' }] } })],
    ['a wrong type', service({ spec: { ports: 80 } })],
    [
      'a version that was removed',
      service({ apiVersion: 'policy/v1beta1', kind: 'PodDisruptionBudget', spec: {} }),
    ],
    ['a kind that nobody knows', service({ kind: 'Servise' })],
    ['a custom resource without a required field', pooler({ cluster: { name: 'db' } })],
    [
      'a custom resource with a misspelt field',
      pooler({ cluster: { name: 'db' }, pgbouncer: { poolmode: 'transaction' } }),
    ],
    [
      'a custom resource with a value outside its list',
      pooler({ cluster: { name: 'db' }, pgbouncer: { poolMode: 'statement' } }),
    ],
  ])('refuses %s', async (_, manifest) => {
    expect(await problemsOf(manifest)).not.toEqual([]);
  });
});

it('deploy/kubernetes has no kustomization that these tests do not render', () => {
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
