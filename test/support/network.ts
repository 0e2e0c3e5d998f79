import { BlockList, isIPv6 } from 'node:net';
import { type Manifest, type NetworkPeer, type NetworkRule, selects } from './manifests';

/** A pod, by its own labels and those of its namespace, or an IP address outside the cluster. */
export interface Endpoint {
  namespace?: string;
  labels?: Record<string, string>;
  address?: string;
  /** Policies may refer to a container port by name. */
  portNames?: Record<number, string>;
}
export interface Port {
  port: number;
  protocol?: 'TCP' | 'UDP';
}

/**
 * The sides that reject a connection; empty if it is allowed. Only sides whose namespace has policies here can reject.
 */
export function rejections(manifests: Manifest[], from: Endpoint, to: Endpoint, port: Port): string[] {
  const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
  return [
    ...(allowed(policies, from, 'egress', to, port, to.portNames) ? [] : ['egress']),
    ...(allowed(policies, to, 'ingress', from, port, to.portNames) ? [] : ['ingress']),
  ];
}

function allowed(
  policies: Manifest[],
  pod: Endpoint,
  direction: 'ingress' | 'egress',
  peer: Endpoint,
  port: Port,
  portNames: Record<number, string> = {},
): boolean {
  const own = policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === pod.namespace &&
      spec.policyTypes.includes(direction === 'ingress' ? 'Ingress' : 'Egress') &&
      selects(spec.podSelector, pod.labels ?? {}),
  );
  if (own.length === 0) return true;
  const side = direction === 'ingress' ? 'from' : 'to';
  return own.some(({ metadata, spec }) =>
    (spec[direction] ?? []).some(
      (rule) =>
        carries(rule, port, portNames) &&
        (rule[side]?.some((entry) => isMeant(entry, peer, metadata.namespace)) ?? true),
    ),
  );
}

const carries = ({ ports }: NetworkRule, { port, protocol = 'TCP' }: Port, names: Record<number, string>) =>
  ports.some((entry) => entry.protocol === protocol && [port, names[port]].includes(entry.port));

function isMeant(entry: NetworkPeer, peer: Endpoint, ownNamespace?: string): boolean {
  if (entry.ipBlock) {
    const { cidr, except = [] } = entry.ipBlock;
    if (!peer.address) return false;
    return isWithin(peer.address, cidr) && !except.some((range) => isWithin(peer.address!, range));
  }
  if (!peer.namespace) return false;
  const namespaces = entry.namespaceSelector ?? {
    matchLabels: { 'kubernetes.io/metadata.name': ownNamespace ?? '' },
  };
  return (
    selects(namespaces, { 'kubernetes.io/metadata.name': peer.namespace }) &&
    selects(entry.podSelector ?? {}, peer.labels ?? {})
  );
}

function isWithin(address: string, cidr: string): boolean {
  const [network = '', bits] = cidr.split('/');
  const family = isIPv6(network) ? 'ipv6' : 'ipv4';
  if (isIPv6(address) !== (family === 'ipv6')) return false;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  return list.check(address, family);
}
