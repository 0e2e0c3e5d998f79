/** The lock file with production packages only: the dependencies of the root, recursively. */
export function forProduction(lock, { without = [] } = {}) {
  const packages = { ...lock.packages, '': withoutDependencies(lock.packages[''], without) };
  const needed = new Set(['']);
  for (const place of needed) for (const next of neededBy(place, packages)) needed.add(next);
  return {
    ...lock,
    packages: Object.fromEntries([...needed].sort().map((place) => [place, packages[place]])),
  };
}

/**
 * The locations, such as `node_modules/a/node_modules/b`, where Node finds the dependencies of the package at this
 * location.
 */
export function neededBy(place, packages) {
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = packages[place];
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => !peerDependenciesMeta?.[name]?.optional);
  const names = [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers];
  return names.map((name) => resolve(name, place, packages)).filter((found) => found !== undefined);
}

function withoutDependencies(root, names) {
  const kept = (dependencies = {}) =>
    Object.fromEntries(Object.entries(dependencies).filter(([name]) => !names.includes(name)));
  return {
    ...root,
    dependencies: kept(root.dependencies),
    optionalDependencies: kept(root.optionalDependencies),
  };
}

function resolve(name, place, packages) {
  for (let folder = place; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
    const candidate = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (packages[candidate]) return candidate;
    if (folder === '') return undefined;
  }
}
