import { type PodSpec, type SpreadConstraint } from './manifests';

export interface Machine {
  name: string;
  zone: string;
  /** A control-plane machine, or one that is being drained: it takes no pod that does not tolerate that. */
  tainted?: boolean;
}

/**
 * How many replicas of one release each machine gets from the scheduler, and how many find no place. Replicas have no
 * tolerations; affinities and resources are not looked at.
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

  /** How far the machine's domain would be ahead of the emptiest, with one replica more. */
  function skew(constraint: SpreadConstraint, machine: Machine): number {
    // Kubernetes ignores taints unless it is told to honour them.
    const counted = machines.filter((one) => constraint.nodeTaintsPolicy !== 'Honor' || !one.tainted);
    const counts = new Map<string, number>();
    for (const one of counted) {
      const domain = domainOf(constraint, one);
      counts.set(domain, (counts.get(domain) ?? 0) + placed.get(one.name)!);
    }
    return counts.get(domainOf(constraint, machine))! + 1 - Math.min(...counts.values());
  }

  function crowd(machine: Machine): number {
    return topologySpreadConstraints.reduce((sum, constraint) => sum + skew(constraint, machine), 0);
  }
}

const domainOf = ({ topologyKey }: SpreadConstraint, { name, zone }: Machine) =>
  topologyKey === 'topology.kubernetes.io/zone' ? zone : name;
