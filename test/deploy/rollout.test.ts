import { selects } from '../support/manifests';
import { type Machine, placement } from '../support/placement';
import {
  type Environment,
  ENVIRONMENTS,
  renderEnvironment,
  one,
  loadContainerSettings,
  withKubectl,
} from '../support/overlays';

withKubectl.describe.each(ENVIRONMENTS)('%s', (environment) => {
  let rendered: Environment;
  beforeAll(() => {
    rendered = renderEnvironment(environment);
  });

  it('never has fewer replicas than before', () => {
    expect(rendered.deployment.spec.strategy).toMatchObject({
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 0 },
    });
    expect(rendered.deployment.spec.strategy.rollingUpdate.maxSurge).not.toBe(0);
  });
  it('gives load balancers time to remove a pod before it drains, and enough time to drain', () => {
    const sleep = rendered.api.lifecycle?.preStop.sleep.seconds ?? 0;
    expect(sleep).toBeGreaterThanOrEqual(3);
    // Draining also needs five seconds for the last responses, and five to close connections.
    const needed =
      sleep + loadContainerSettings(rendered.api, one(rendered.service, 'ConfigMap')).DRAIN_SECONDS! + 10;
    expect(rendered.deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
      needed,
    );
  });
  it('sends requests only to a ready pod', () => {
    expect(rendered.api.readinessProbe?.httpGet).toEqual({ path: '/health/ready', port: 'http' });
  });
  it('does not restart a pod because the database is down', () => {
    expect(rendered.api.livenessProbe?.httpGet).toEqual({ path: '/health/live', port: 'http' });
    expect(rendered.api.startupProbe?.httpGet).toEqual({ path: '/health/live', port: 'http' });
  });
  it('spreads the replicas of each release over zones and machines', () => {
    const constraints = rendered.deployment.spec.template.spec.topologySpreadConstraints;
    expect(constraints.map(({ topologyKey }) => topologyKey)).toEqual([
      'topology.kubernetes.io/zone',
      'kubernetes.io/hostname',
    ]);
    for (const constraint of constraints) {
      expect(constraint).toMatchObject({
        maxSkew: 1,
        nodeTaintsPolicy: 'Honor',
        matchLabelKeys: ['pod-template-hash'],
      });
      expect(selects(constraint.labelSelector, rendered.deployment.spec.template.metadata.labels)).toBe(true);
    }
  });
  it('leaves the number of replicas to the autoscaler', () => {
    const { scaleTargetRef, minReplicas, maxReplicas } = one(
      rendered.service,
      'HorizontalPodAutoscaler',
    ).spec;
    expect(rendered.deployment.spec.replicas).toBeUndefined();
    expect(scaleTargetRef).toMatchObject({ kind: 'Deployment', name: rendered.deployment.metadata.name });
    expect(minReplicas).toBeGreaterThanOrEqual(2);
    expect(maxReplicas).toBeGreaterThan(minReplicas);
  });
  it('keeps a replica while machines are drained, and does not block draining', () => {
    const budget = one(rendered.service, 'PodDisruptionBudget').spec;
    expect(selects(budget.selector, rendered.deployment.spec.template.metadata.labels)).toBe(true);
    expect(budget.maxUnavailable).toBeGreaterThanOrEqual(1);
    expect(budget.maxUnavailable).toBeLessThan(
      one(rendered.service, 'HorizontalPodAutoscaler').spec.minReplicas,
    );
  });
  it('runs its migration before, with limited retries and duration', () => {
    expect(rendered.migrate.command).toEqual(['gamewharf', 'migrate']);
    expect(rendered.job.spec.template.spec.restartPolicy).toBe('Never');
    expect(rendered.job.spec.backoffLimit).toBeLessThanOrEqual(5);
    expect(rendered.job.spec.activeDeadlineSeconds).toBeLessThanOrEqual(3600);
    expect(rendered.job.metadata.annotations).toMatchObject({ 'argocd.argoproj.io/hook': 'PreSync' });
  });
  it('can be deleted without the data: neither the namespace nor the database is part of it', () => {
    const kinds = [...rendered.service, ...rendered.migration].map(({ kind }) => kind);
    for (const kind of ['Namespace', 'Cluster', 'PersistentVolumeClaim', 'ObjectStore'])
      expect(kinds).not.toContain(kind);
  });
});

withKubectl.describe('the placement of production', () => {
  const control: Machine = { name: 'control', zone: 'a', tainted: true };
  const workers = ['a', 'b', 'c'].map((zone) => ({ name: `worker-${zone}`, zone }));
  const drained = (name: string) =>
    workers.map((one) => (one.name === name ? { ...one, tainted: true } : one));
  let pod: Environment['pods'][0];
  beforeAll(() => {
    [pod] = renderEnvironment('production').pods;
  });

  it('spreads six replicas evenly over three workers, whatever the control plane has', () => {
    expect(placement(pod.spec, [control, ...workers], 6)).toEqual({
      placed: { control: 0, 'worker-a': 2, 'worker-b': 2, 'worker-c': 2 },
      pending: 0,
    });
  });
  it('continues on two workers while the third is drained', () => {
    expect(placement(pod.spec, [control, ...drained('worker-b')], 6)).toEqual({
      placed: { control: 0, 'worker-a': 3, 'worker-b': 0, 'worker-c': 3 },
      pending: 0,
    });
  });
  it('never puts two replicas on one worker while another is free', () => {
    expect(placement(pod.spec, [control, ...workers], 3).placed).toMatchObject({
      'worker-a': 1,
      'worker-b': 1,
      'worker-c': 1,
    });
  });
  it('control: most remain pending if tainted machines count', () => {
    const counting = structuredClone(pod.spec);
    for (const constraint of counting.topologySpreadConstraints) delete constraint.nodeTaintsPolicy;
    expect(placement(counting, [control, ...workers], 6).pending).toBe(3);
    expect(placement(counting, [control, ...drained('worker-b')], 6).pending).toBe(4);
  });
});
