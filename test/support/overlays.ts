import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadSettings } from '../../src/platform/config/load-settings';
import { type Container, type Manifest, type PodSpec, hasKubectl, kubernetes, render } from './manifests';
import { runIf } from './run-if';

export const ENVIRONMENTS = ['staging', 'production'];
export const withKubectl = runIf(hasKubectl, 'kubectl is not installed');

export interface Pod {
  labels: Record<string, string>;
  spec: PodSpec;
}

/** Everything that the overlays of one environment produce. */
export interface Environment {
  service: Manifest[];
  migration: Manifest[];
  database: Manifest[];
  everything: Manifest[];
  deployment: Manifest;
  job: Manifest;
  pods: [service: Pod, migration: Pod];
  containers: Container[];
  api: Container;
  migrate: Container;
}

export function renderEnvironment(name: string, folder = kubernetes): Environment {
  const overlay = (...names: string[]) => render(path.join(folder, 'overlays', name, ...names));
  const [service, migration, database] = [overlay(), overlay('migrate'), overlay('database')];
  const deployment = one(service, 'Deployment');
  const job = one(migration, 'Job');
  const pods: [Pod, Pod] = [readPod(deployment), readPod(job)];
  return {
    service,
    migration,
    database,
    everything: [...service, ...migration, ...database],
    deployment,
    job,
    pods,
    containers: pods.flatMap(({ spec }) => [...(spec.initContainers ?? []), ...spec.containers]),
    api: only(pods[0].spec.containers),
    migrate: only(pods[1].spec.containers),
  };
}

const readPod = ({ spec }: Manifest): Pod => ({
  labels: spec.template.metadata.labels,
  spec: spec.template.spec,
});

/** What `work` returns for the manifests after a change to them, such as one described in docs/guides/kubernetes.md. */
export function changed<T>(change: (folder: string) => void, work: (folder: string) => T): T {
  const copy = mkdtempSync(path.join(tmpdir(), 'gamewharf-deploy-'));
  try {
    cpSync(kubernetes, copy, { recursive: true });
    change(copy);
    return work(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

export const useComponent = (environment: string, component: string) => (folder: string) =>
  edit(path.join(folder, 'overlays', environment, 'kustomization.yaml'), (text) =>
    text.replace('components:\n', `components:\n  - ../../components/${component}\n`),
  );

export const useRestored = (environment: string) => (folder: string) =>
  edit(
    path.join(folder, 'overlays', environment, 'release', 'kustomization.yaml'),
    (text) => `${text}components: [../../../components/restored-database]\n`,
  );

export const useSetting = (environment: string, setting: string) => (folder: string) =>
  edit(path.join(folder, 'overlays', environment, 'release', 'kustomization.yaml'), (text) =>
    text.replace('literals:\n', `literals:\n      - ${setting}\n`),
  );

function edit(file: string, change: (text: string) => string): void {
  const before = readFileSync(file, 'utf8');
  const after = change(before);
  if (after === before) throw new Error(`${file} was not changed`);
  writeFileSync(file, after);
}

export function one(manifests: Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.filter(({ kind: k, metadata }) => k === kind && (!name || metadata.name === name));
  if (found.length !== 1) throw new Error(`${found.length} of ${kind} ${name ?? ''}`);
  return found[0] as Manifest;
}

export function only<T>(list: T[]): T {
  if (list.length !== 1) throw new Error(`${list.length} instead of one`);
  return list[0] as T;
}

export const variable = (container: Container, name: string) =>
  container.env.find((entry) => entry.name === name);

/** The environment as Kubernetes builds it: $(NAME) expanded from earlier variables, and a value for each secret. */
export function environmentVariables(
  container: Container,
  settings: Manifest,
  secrets: Record<string, string> = {},
): Record<string, string> {
  const known: Record<string, string> = { ...settings.data };
  for (const { name, value } of container.env)
    known[name] =
      value?.replace(/\$\((\w+)\)/g, (_, used: string) => known[used] ?? '') ?? secrets[name] ?? secret(name);
  return known;
}

/** The Redis of docs/guides/kubernetes.md is in a namespace `redis`. */
const SECRETS: Record<string, string> = {
  REDIS_URL: 'redis://redis.redis:6379',
  FILES_S3_ENDPOINT: 'https://s3.example.com',
};
const secret = (name: string) => SECRETS[name] ?? 'x'.repeat(64);

export const databaseUrl = (container: Container, name = 'DATABASE_URL') => {
  const settings = { data: {} } as Manifest;
  return new URL(environmentVariables(container, settings)[name] ?? '');
};

/** How the service parses these settings, with a plausible value for each secret. */
export function loadContainerSettings(container: Container, settings: Manifest) {
  const given = environmentVariables(container, settings);
  for (const name of Object.keys(given).filter((one) => one.endsWith('_FILE'))) {
    given[name.replace(/_FILE$/, '')] = secret(name);
    delete given[name];
  }
  return loadSettings(given);
}

export function mebibytes(quantity: string): number {
  const [, number, unit] = /^(\d+)(Mi|Gi|MB|GB)$/.exec(quantity) ?? [];
  return Number(number) * (unit?.startsWith('G') ? 1024 : 1);
}
