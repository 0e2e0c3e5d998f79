import { spawnSync } from 'node:child_process';
import path from 'node:path';
import Ajv from 'ajv';
import { parseAllDocuments } from 'yaml';
import { customResources } from './custom-resources';

export const kubernetes = path.join(__dirname, '..', '..', 'deploy', 'kubernetes');

interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}
interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef?: { name: string; key: string; optional?: boolean } };
}
interface Probe {
  httpGet?: { path: string; port: string };
  periodSeconds: number;
  timeoutSeconds: number;
  failureThreshold: number;
}
export interface Container {
  name: string;
  image: string;
  command?: string[];
  ports?: { name: string; containerPort: number; hostPort?: number }[];
  env: EnvVar[];
  envFrom: { configMapRef: { name: string } }[];
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  securityContext: {
    allowPrivilegeEscalation: boolean;
    privileged: boolean;
    readOnlyRootFilesystem: boolean;
    capabilities: { drop: string[]; add?: string[] };
  };
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  lifecycle?: { preStop: { sleep: { seconds: number } } };
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
}
export interface SpreadConstraint {
  topologyKey: string;
  maxSkew: number;
  whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway';
  nodeTaintsPolicy?: 'Honor' | 'Ignore';
  labelSelector: Selector;
}
export interface PodSpec {
  automountServiceAccountToken?: boolean;
  enableServiceLinks?: boolean;
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  restartPolicy?: string;
  terminationGracePeriodSeconds: number;
  securityContext: {
    runAsNonRoot: boolean;
    runAsUser: number;
    runAsGroup: number;
    seccompProfile: { type: string };
  };
  topologySpreadConstraints: SpreadConstraint[];
  initContainers?: Container[];
  containers: Container[];
  volumes: {
    name: string;
    hostPath?: unknown;
    emptyDir?: { sizeLimit?: string };
    secret?: { secretName: string; items?: { key: string; path: string }[] };
  }[];
}
export interface NetworkPeer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}
export interface NetworkRule {
  from?: NetworkPeer[];
  to?: NetworkPeer[];
  ports: { port: string | number; protocol: string }[];
}

/** The fields of any kind that the policies read; a policy only reads those of its own kind. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  automountServiceAccountToken?: boolean;
  data?: Record<string, string>;
  spec: Spec;
}
interface Spec {
  [field: string]: unknown;
  replicas?: number;
  selector: Selector & Record<string, string>;
  template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
  strategy: { type: string; rollingUpdate: { maxUnavailable: number | string; maxSurge: number | string } };
  ports: { name: string; port: number; targetPort: string }[];
  podSelector: Selector;
  policyTypes: string[];
  ingress?: NetworkRule[];
  egress?: NetworkRule[];
  tls: { secretName: string; hosts: string[] }[];
  rules: {
    host: string;
    http: { paths: { path: string; backend: { service: { name: string; port: { name: string } } } }[] };
  }[];
  scaleTargetRef: { kind: string; name: string };
  minReplicas: number;
  maxReplicas: number;
  maxUnavailable: number;
  backoffLimit: number;
  activeDeadlineSeconds: number;
  endpoints: { port: string; path: string }[];
  instances: number;
  enableSuperuserAccess: boolean;
  certificates: { serverAltDNSNames: string[] };
  affinity: { enablePodAntiAffinity: boolean; podAntiAffinityType: string; topologyKey: string };
  postgresql: {
    synchronous: { method: string; number: number; dataDurability: string; failoverQuorum: boolean };
    parameters: Record<string, string>;
  };
  plugins: { name: string; isWALArchiver: boolean; parameters: { barmanObjectName: string } }[];
  externalClusters: {
    name: string;
    plugin: { parameters: { barmanObjectName: string; serverName: string } };
  }[];
  bootstrap: { recovery?: { source: string; recoveryTarget?: unknown } };
  cluster: { name: string };
  pgbouncer: { poolMode: string; parameters: Record<string, string> };
  schedule: string;
  method: string;
  configuration: {
    destinationPath: string;
    s3Credentials: Record<string, { name: string; key: string }>;
  };
}

export const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

export function render(folder: string): Manifest[] {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${folder}: ${stderr}`);
  return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
}

/** Whether the selector matches pods with these labels; an empty one matches every pod. */
export function selects(selector: Selector, labels: Record<string, string>): boolean {
  const exact = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  const expressions = (selector.matchExpressions ?? []).every(({ key, operator, values }) => {
    if (operator === 'Exists') return key in labels;
    if (operator === 'In') return values?.includes(labels[key] ?? '');
    throw new Error(`the policies do not know the operator ${operator}`);
  });
  return exact && expressions;
}

/**
 * What the API server would reject: an unknown kind or version, an unknown field, and a missing or wrong one. Built-in
 * kinds take two packages: one knows every field, the other which are required.
 */
export async function validateManifest(manifest: Manifest): Promise<string[]> {
  const { apiVersion, kind } = manifest;
  const custom = customResources[`${apiVersion}/${kind}`];
  if (custom) {
    const validate = new Ajv({ allErrors: true, strict: true }).compile(custom);
    validate(manifest);
    return (validate.errors ?? []).map(({ instancePath, message, params }) =>
      [instancePath, message, JSON.stringify(params)].join(' '),
    );
  }
  return [...(await unknownFields(manifest)), ...(await invalidFields(manifest))];
}

interface Model {
  getAttributeTypeMap?(): { baseName: string; type: string }[];
}

async function unknownFields(manifest: Manifest): Promise<string[]> {
  const models = (await import('@kubernetes/client-node/dist/gen/models/all.js')) as unknown as Record<
    string,
    Model
  >;
  const [version, group] = manifest.apiVersion.split('/').reverse() as [string, string?];
  const name = `${version.charAt(0).toUpperCase()}${version.slice(1)}${manifest.kind}`;
  if (!models[name]) return [`no kind ${manifest.kind} in ${group ?? 'core'}/${version}`];
  const visit = (value: unknown, type: string, at: string): string[] => {
    const element = /^Array<(.+)>$/.exec(type)?.[1];
    if (element) {
      if (!Array.isArray(value)) return [`${at} is not a list`];
      return value.flatMap((item, index) => visit(item, element, `${at}[${index}]`));
    }
    const fields = models[type]?.getAttributeTypeMap?.();
    if (!fields || typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([key, inner]) => {
      const field = fields.find(({ baseName }) => baseName === key);
      return field ? visit(inner, field.type, `${at}.${key}`) : [`${at}.${key} is unknown`];
    });
  };
  return visit(manifest, name, manifest.kind);
}

async function invalidFields(manifest: Manifest): Promise<string[]> {
  const { apiVersion, kind } = manifest;
  try {
    const module = (await import(`kubernetes-models/${apiVersion}/${kind}`)) as Record<
      string,
      new (data: Manifest) => { validate(): void }
    >;
    const Kind = module[kind];
    if (!Kind) return [`no kind ${kind} in ${apiVersion}`];
    new Kind(manifest).validate();
    return [];
  } catch (error) {
    return [`${apiVersion} ${kind}: ${(error as Error).message}`];
  }
}
