import { readFileSync } from 'node:fs';
import path from 'node:path';
import { SECRET_NAMES, SETTING_NAMES } from '../../src/platform/config/settings';
import { kubernetes } from '../support/manifests';
import {
  type Environment,
  ENVIRONMENTS,
  renderEnvironment,
  mebibytes,
  one,
  loadContainerSettings,
  withKubectl,
  variable,
} from '../support/overlays';

withKubectl.describe.each(ENVIRONMENTS)('%s', (environment) => {
  let rendered: Environment;
  beforeAll(() => {
    rendered = renderEnvironment(environment);
  });

  describe('containers', () => {
    it('run as a non-root user', () => {
      for (const { spec } of rendered.pods) {
        expect(spec.securityContext.runAsNonRoot).toBe(true);
        expect(spec.securityContext.runAsUser).toBeGreaterThan(0);
      }
    });
    it('cannot write to their own files', () => {
      for (const container of rendered.containers)
        expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
    });
    it('are confined by the default seccomp profile', () => {
      for (const { spec } of rendered.pods)
        expect(spec.securityContext.seccompProfile.type).toBe('RuntimeDefault');
    });
    it('have no Linux capabilities', () => {
      for (const { securityContext } of rendered.containers)
        expect(securityContext.capabilities).toEqual({ drop: ['ALL'] });
    });
    it('cannot gain privileges', () => {
      for (const { securityContext } of rendered.containers) {
        expect(securityContext.allowPrivilegeEscalation).toBe(false);
        expect(securityContext.privileged).toBe(false);
      }
    });
    it('get no token for the Kubernetes API', () => {
      for (const { spec } of rendered.pods) expect(spec.automountServiceAccountToken).toBe(false);
      expect(one(rendered.service, 'ServiceAccount').automountServiceAccountToken).toBe(false);
    });
    it('get no environment variables generated from Services', () => {
      for (const { spec } of rendered.pods) expect(spec.enableServiceLinks).toBe(false);
    });
    it('share nothing with their host', () => {
      for (const { spec } of rendered.pods) {
        expect([spec.hostNetwork, spec.hostPID, spec.hostIPC]).toEqual([undefined, undefined, undefined]);
        for (const volume of spec.volumes) expect(volume.hostPath).toBeUndefined();
      }
      for (const { ports } of rendered.containers)
        for (const port of ports ?? []) expect(port.hostPort).toBeUndefined();
    });
    it('run an image with an exact version', () => {
      for (const { image } of rendered.containers)
        expect(image).toMatch(/^[\w.-]+\.[\w./-]+(:\d+\.\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})$/);
    });
    it('run the same image with the same settings in the service and in its migration', () => {
      expect(rendered.migrate.image).toBe(rendered.api.image);
      expect(rendered.migrate.envFrom).toEqual(rendered.api.envFrom);
      expect(one(rendered.migration, 'ConfigMap')).toEqual(one(rendered.service, 'ConfigMap'));
    });
    it('request CPU and memory, and limit memory', () => {
      for (const { resources } of rendered.containers) {
        expect(resources.requests).toMatchObject({ cpu: expect.any(String), memory: expect.any(String) });
        expect(mebibytes(resources.limits.memory ?? '')).toBeGreaterThanOrEqual(
          mebibytes(resources.requests.memory ?? ''),
        );
      }
    });
    it('are never throttled while their machine has idle cores', () => {
      for (const { resources } of rendered.containers) expect(resources.limits.cpu).toBeUndefined();
    });
    it('mount everything read-only except a bounded /tmp', () => {
      for (const { spec } of rendered.pods) {
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
      expect(rendered.everything.filter(({ kind }) => kind === 'Secret')).toEqual([]);
    });
    it('reach a container as a reference or as a file, never as a literal', () => {
      for (const { name, value } of rendered.containers.flatMap(({ env }) => env)) {
        if (value === undefined || name.endsWith('_FILE')) continue;
        expect(name).not.toMatch(/TOKEN|PEPPER|SECRET|PASSWORD|PRIVATE/);
        expect(value).not.toMatch(/:\/\/[^/@$]*:[^/@$]+@/);
      }
    });
    it('are not among the settings', () => {
      for (const [key, value] of Object.entries(one(rendered.service, 'ConfigMap').data ?? {})) {
        expect(key).not.toMatch(/TOKEN|PEPPER|SECRET|PASSWORD|DATABASE_URL|REDIS_URL/);
        expect(value).not.toContain('@');
      }
    });
    it('named by a _FILE setting are mounted at its path', () => {
      for (const { spec } of rendered.pods) {
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
    it('are mounted without the key of the database authority', () => {
      for (const { spec } of rendered.pods) {
        const authority = spec.volumes.find(({ secret }) => secret?.secretName.endsWith('-ca'));
        expect(authority?.secret?.items).toEqual([{ key: 'ca.crt', path: 'ca.crt' }]);
      }
    });
    it('are all listed in docs/guides/kubernetes.md', () => {
      const page = readFileSync(path.join(kubernetes, '..', '..', 'docs', 'guides', 'kubernetes.md'), 'utf8');
      const names = [
        ...rendered.containers.flatMap(({ env }) =>
          env.map(({ valueFrom }) => valueFrom?.secretKeyRef?.name),
        ),
        ...rendered.pods.flatMap(({ spec }) => spec.volumes.map(({ secret }) => secret?.secretName)),
        ...one(rendered.service, 'Ingress').spec.tls.map(({ secretName }) => secretName),
        ...Object.values(one(rendered.database, 'ObjectStore').spec.configuration.s3Credentials).map(
          ({ name }) => name,
        ),
      ];
      for (const name of new Set(names)) if (name) expect(page).toContain(`\`${name}\``);
    });
  });

  describe('settings', () => {
    it('are production settings', () => {
      for (const container of rendered.containers)
        expect(variable(container, 'NODE_ENV')?.value).toBe('production');
    });
    it('never load demo data', () => {
      expect(one(rendered.service, 'ConfigMap').data).toMatchObject({ DEMO_DATA: 'false' });
    });
    it('are named by their content, so that a change rolls out', () => {
      const { name } = one(rendered.service, 'ConfigMap').metadata;
      expect(name).toMatch(/^gamewharf-settings-[a-z0-9]{10}$/);
      expect(rendered.api.envFrom).toEqual([{ configMapRef: { name } }]);
    });
    it('use only variables that were declared before', () => {
      for (const { env } of rendered.containers) {
        env.forEach(({ name, value }, index) => {
          const declared = env.slice(0, index).map((entry) => entry.name);
          for (const [, used] of value?.matchAll(/\$\((\w+)\)/g) ?? [])
            expect([name, declared]).toEqual([name, expect.arrayContaining([used])]);
        });
      }
    });
    it('exist in the service', () => {
      const settings = [...SETTING_NAMES, ...SECRET_NAMES.map((name) => `${name}_FILE`)];
      expect(
        Object.keys(one(rendered.service, 'ConfigMap').data ?? {}).filter((name) => !settings.includes(name)),
      ).toEqual([]);
      for (const { env } of rendered.containers) {
        const partsOfOthers = env.flatMap(({ value }) =>
          [...(value?.matchAll(/\$\((\w+)\)/g) ?? [])].map(([, name]) => name),
        );
        const unknown = env.filter(({ name }) => !settings.includes(name) && !partsOfOthers.includes(name));
        expect(unknown.map(({ name }) => name)).toEqual([]);
      }
    });
    it('are accepted by the service', () => {
      const settings = one(rendered.service, 'ConfigMap');
      for (const container of rendered.containers)
        expect(() => loadContainerSettings(container, settings)).not.toThrow();
    });
    it('match the ports that the container declares', () => {
      const ports = new Map(
        rendered.api.ports?.map(({ name, containerPort }) => [name, String(containerPort)]),
      );
      expect(variable(rendered.api, 'PORT')?.value).toBe(ports.get('http'));
      expect(variable(rendered.api, 'METRICS_PORT')?.value).toBe(ports.get('metrics'));
    });
    it('use the host of the Ingress as the public URL of the API', () => {
      const hosts = one(rendered.service, 'Ingress').spec.rules.map(({ host }) => `https://${host}`);
      const { PUBLIC_URL, STORE_URL } = one(rendered.service, 'ConfigMap').data ?? {};
      expect([PUBLIC_URL, STORE_URL]).toEqual(hosts);
    });
  });
});
