import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Bill {
  bomFormat: string;
  metadata: { component: { name: string } };
  components: { name: string; version: string; 'bom-ref': string }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

type Versions = Record<string, string>;

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
  'dependencies' | 'optionalDependencies' | 'devDependencies',
  Versions
>;

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Record<string, { hasInstallScript?: boolean; dev?: boolean }>;
};

test('npm runs no install script of a package', () => {
  const { allowScripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { allowScripts: object };
  const withScripts = Object.keys(packages).filter((path) => packages[path]!.hasInstallScript);
  const names = new Set(withScripts.map((path) => path.slice(path.lastIndexOf('node_modules/') + 13)));
  expect(allowScripts).toEqual(Object.fromEntries([...names].map((name) => [name, false])));
});

test('the bill of materials lists exactly the production packages', () => {
  const text = execFileSync(process.execPath, ['tools/scripts/sbom.mjs'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  const bill = JSON.parse(text) as Bill;
  expect(bill.bomFormat).toBe('CycloneDX');
  expect(bill.metadata.component.name).toBe('gamewharf');

  const listed = new Set(bill.components.map(({ name, version }) => `${name}@${version}`));
  const wanted = { ...manifest.dependencies, ...manifest.optionalDependencies };
  for (const [name, version] of Object.entries(wanted)) expect(listed).toContain(`${name}@${version}`);
  // A tool can also be part of a production package, as oauth4webapi is of openid-client.
  const tools = Object.entries(manifest.devDependencies).filter(
    ([name]) => packages[`node_modules/${name}`]!.dev,
  );
  for (const [name, version] of tools) expect(listed).not.toContain(`${name}@${version}`);

  const refs = new Set(bill.dependencies.map(({ ref }) => ref));
  for (const { dependsOn } of bill.dependencies) for (const ref of dependsOn) expect(refs).toContain(ref);
});
