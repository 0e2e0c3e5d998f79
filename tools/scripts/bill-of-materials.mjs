import { neededBy } from './production-packages.mjs';

/** The bill of materials of all packages of a lock file, as CycloneDX; reproducible. */
export function billOfMaterials({ packages }) {
  const places = Object.keys(packages);
  const nameAt = (place) => packages[place].name ?? place.split('node_modules/').at(-1);
  const refAt = (place) => `${nameAt(place)}@${packages[place].version}`;
  const components = new Map(
    places.map((place) => [refAt(place), component(nameAt(place), packages[place])]),
  );
  const application = components.get(refAt(''));
  components.delete(refAt(''));
  const needs = new Map(places.map((place) => [refAt(place), new Set()]));
  for (const place of places)
    for (const next of neededBy(place, packages)) needs.get(refAt(place)).add(refAt(next));
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { ...application, type: 'application' } },
    components: [...components.values()].sort(byRef('bom-ref')),
    dependencies: [...needs]
      .map(([ref, dependsOn]) => ({ ref, dependsOn: [...dependsOn].sort() }))
      .sort(byRef('ref')),
  };
}

const byRef = (key) => (a, b) => (a[key] < b[key] ? -1 : 1);

function component(name, { version, license, integrity }) {
  const [algorithm, hash] = /^(sha\d+)-(.+)$/.exec(integrity ?? '')?.slice(1) ?? [];
  return {
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(license && { licenses: [toLicenseField(license)] }),
    ...(hash && {
      hashes: [
        { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(hash, 'base64').toString('hex') },
      ],
    }),
  };
}

/** SPDX recognizes an ID by its format; several IDs, or a condition, are an expression. */
function toLicenseField(license) {
  return /^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license };
}
