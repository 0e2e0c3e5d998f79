import { type PodSpec, type SpreadConstraint } from './manifests';

export interface Machine {
  name: string;
  zone: string;
  /** A control-plane node or one that is being drained: it accepts no pod without a toleration. */
  tainted?: boolean;
}

/**
 * How many replicas of one release the scheduler places on each machine, and how many remain pending. Replicas have no
 * tolerations; affinities and resources are ignored.
 */
export function placement({ topologySpreadConstraints }: PodSpec, machines: Machine[], replicas: number) {
  const placed = new Map(machines.map(({ name }) => [name, 0]));
  const strict = topologySpreadConstraints.filter((one) => one.whenUnsatisfiable === 'DoNotSchedule');
  let pending = 0;
  for (let replica = 0; replica < replicas; replica++) {
    const [machine] = machines
      .filter(
        (one) => !one.tainted && strict.every((constraint) => skew(constraint, one) <= constraint.maxSkew),
      )
      .sort((a, b) => crowd(a) - crowd(b));
    if (machine) placed.set(machine.name, placed.get(machine.name)! + 1);
    else pending++;
  }
  return { placed: Object.fromEntries(placed), pending };

  /** The skew of the machine's domain with one more replica. */
  function skew(constraint: SpreadConstraint, machine: Machine): number {
    // Kubernetes ignores taints unless it is told to honor them.
    const counted = machines.filter((one) => constraint.nodeTaintsPolicy !== 'Honor' || !one.tainted);
    const counts = new Map<string, number>();
    for (const one of counted) {
      const domain = topologyDomain(constraint, one);
      counts.set(domain, (counts.get(domain) ?? 0) + placed.get(one.name)!);
    }
    return counts.get(topologyDomain(constraint, machine))! + 1 - Math.min(...counts.values());
  }

  function crowd(machine: Machine): number {
    return topologySpreadConstraints.reduce((sum, constraint) => sum + skew(constraint, machine), 0);
  }
}

const topologyDomain = ({ topologyKey }: SpreadConstraint, { name, zone }: Machine) =>
  topologyKey === 'topology.kubernetes.io/zone' ? zone : name;
