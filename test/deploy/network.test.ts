import { selects } from '../support/manifests';
import {
  type Environment,
  ENVIRONMENTS,
  renderEnvironment,
  one,
  only,
  withKubectl,
} from '../support/overlays';

withKubectl.describe.each(ENVIRONMENTS)('%s', (environment) => {
  let rendered: Environment;
  beforeAll(() => {
    rendered = renderEnvironment(environment);
  });

  const policy = (name: string) => one(rendered.everything, 'NetworkPolicy', name).spec;
  const poolerPod = { 'cnpg.io/poolerName': 'gamewharf-db-pooler-rw' };
  const databasePod = { 'cnpg.io/cluster': 'gamewharf-db' };

  it('denies everything that no policy allows', () => {
    expect(policy('default-deny')).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
  });
  it('has a policy for every pod in both directions', () => {
    for (const labels of [...rendered.pods.map((pod) => pod.labels), poolerPod, databasePod]) {
      const own = rendered.everything.filter(
        ({ kind, metadata, spec }) =>
          kind === 'NetworkPolicy' && metadata.name !== 'default-deny' && selects(spec.podSelector, labels),
      );
      expect(only(own).spec.policyTypes).toEqual(['Ingress', 'Egress']);
    }
  });
  it('allows the DNS of the cluster, by exactly its labels', () => {
    for (const { metadata, spec } of rendered.everything.filter(({ kind }) => kind === 'NetworkPolicy')) {
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
  it('opens the metrics to the monitoring namespace only', () => {
    const open = (policy('gamewharf').ingress ?? []).filter(({ ports }) =>
      ports.some(({ port }) => port === 'metrics'),
    );
    expect(only(open).from).toEqual([
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } },
    ]);
  });
  it('names only ports that the container has', () => {
    const names = rendered.api.ports?.map(({ name }) => name);
    for (const { ports } of policy('gamewharf').ingress ?? [])
      for (const { port } of ports) expect(names).toContain(port);
    for (const { spec } of rendered.service.filter(({ kind }) => kind === 'Service'))
      for (const { targetPort } of spec.ports) expect(names).toContain(targetPort);
  });
  it('has Services that select the pods of the service and not those of the migration', () => {
    for (const { spec } of rendered.service.filter(({ kind }) => kind === 'Service')) {
      expect(rendered.pods.map(({ labels }) => selects({ matchLabels: spec.selector }, labels))).toEqual([
        true,
        false,
      ]);
    }
  });
  it('requires TLS on every host', () => {
    const { tls, rules } = one(rendered.service, 'Ingress').spec;
    expect(tls.flatMap(({ hosts }) => hosts).sort()).toEqual(rules.map(({ host }) => host).sort());
  });
  it('routes external requests only to the public port', () => {
    for (const { http } of one(rendered.service, 'Ingress').spec.rules) {
      for (const { backend } of http.paths)
        expect(backend.service).toEqual({ name: 'gamewharf', port: { name: 'http' } });
    }
    expect(
      one(rendered.service, 'Service', 'gamewharf').spec.ports.map(({ targetPort }) => targetPort),
    ).toEqual(['http']);
  });
  it("takes over nothing of the store's host except the legacy API", () => {
    const legacy = one(rendered.service, 'Ingress').spec.rules[1];
    expect(legacy?.http.paths.map(({ path: prefix }) => prefix)).toEqual(['/api/1']);
  });
  it('has its metrics scraped from the Service that exposes them', () => {
    const { selector, endpoints } = one(rendered.service, 'ServiceMonitor').spec;
    const scraped = rendered.service.filter(
      ({ kind, metadata }) => kind === 'Service' && selects(selector, metadata.labels ?? {}),
    );
    expect(scraped.map(({ metadata }) => metadata.name)).toEqual(['gamewharf-metrics']);
    expect(only(scraped).spec.ports.map(({ name }) => name)).toContain(only(endpoints).port);
  });
});
