import { selects } from '../support/manifests';
import { type Environment, ENVIRONMENTS, environmentOf, one, only, withKubectl } from '../support/overlays';

withKubectl.describe.each(ENVIRONMENTS)('%s', (environment) => {
  let rendered: Environment;
  beforeAll(() => {
    rendered = environmentOf(environment);
  });

  const policy = (name: string) => one(rendered.everything, 'NetworkPolicy', name).spec;
  const poolerPod = { 'cnpg.io/poolerName': 'gamewharf-db-pooler-rw' };
  const databasePod = { 'cnpg.io/cluster': 'gamewharf-db' };

  it('is closed to everything that no policy opens', () => {
    expect(policy('default-deny')).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
  });
  it('has a policy of its own for every pod, in both directions', () => {
    for (const labels of [...rendered.pods.map((pod) => pod.labels), poolerPod, databasePod]) {
      const own = rendered.everything.filter(
        ({ kind, metadata, spec }) =>
          kind === 'NetworkPolicy' && metadata.name !== 'default-deny' && selects(spec.podSelector, labels),
      );
      expect(only(own).spec.policyTypes).toEqual(['Ingress', 'Egress']);
    }
  });
  it('reaches the DNS of the cluster, by exactly its labels', () => {
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
  it('opens the metrics to the monitoring namespace alone', () => {
    const open = (policy('gamewharf').ingress ?? []).filter(({ ports }) =>
      ports.some(({ port }) => port === 'metrics'),
    );
    expect(only(open).from).toEqual([
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } },
    ]);
  });
  it('names no port that the container does not have', () => {
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
  it('is entered by TLS on every host', () => {
    const { tls, rules } = one(rendered.service, 'Ingress').spec;
    expect(tls.flatMap(({ hosts }) => hosts).sort()).toEqual(rules.map(({ host }) => host).sort());
  });
  it('leads from outside to the public port alone', () => {
    for (const { http } of one(rendered.service, 'Ingress').spec.rules) {
      for (const { backend } of http.paths)
        expect(backend.service).toEqual({ name: 'gamewharf', port: { name: 'http' } });
    }
    expect(
      one(rendered.service, 'Service', 'gamewharf').spec.ports.map(({ targetPort }) => targetPort),
    ).toEqual(['http']);
  });
  it('takes over nothing of the host of the store but the legacy API', () => {
    const legacy = one(rendered.service, 'Ingress').spec.rules[1];
    expect(legacy?.http.paths.map(({ path: prefix }) => prefix)).toEqual(['/api/1']);
  });
  it('has its metrics scraped from the Service that carries them', () => {
    const { selector, endpoints } = one(rendered.service, 'ServiceMonitor').spec;
    const scraped = rendered.service.filter(
      ({ kind, metadata }) => kind === 'Service' && selects(selector, metadata.labels ?? {}),
    );
    expect(scraped.map(({ metadata }) => metadata.name)).toEqual(['gamewharf-metrics']);
    expect(only(scraped).spec.ports.map(({ name }) => name)).toContain(only(endpoints).port);
  });
});
