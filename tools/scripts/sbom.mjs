// The bill of materials of what runs in production, as CycloneDX: node tools/scripts/sbom.mjs [FILE]
//
// npm's own --omit=dev also leaves out what both production and a development package need, such as express. So npm is asked
// for everything, and what the lock file has for development alone is taken out.
import { execSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
const { name, version } = lock.packages[''];

const own = `${name}@${version}`;
const inProduction = new Set([own]);
for (const [place, entry] of Object.entries(lock.packages)) {
  const installedAs = place.split('node_modules/').at(-1);
  if (place !== '' && !entry.dev && !entry.devOptional)
    inProduction.add(`${entry.name ?? installedAs}@${entry.version}`);
}

const command = 'npm sbom --package-lock-only --sbom-format=cyclonedx --sbom-type=application';
const bill = JSON.parse(execSync(command, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }));

// npm calls it by the name of the folder that it lies in.
bill.metadata.component.name = name;
bill.components = bill.components.filter((one) => inProduction.has(`${one.name}@${one.version}`));
const kept = new Set([bill.metadata.component, ...bill.components].map((one) => one['bom-ref']));
bill.dependencies = bill.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }));

const text = `${JSON.stringify(bill, null, 2)}\n`;
const [file] = process.argv.slice(2);
if (file) {
  writeFileSync(file, text);
  console.log(`${file}: ${bill.components.length} packages`);
} else process.stdout.write(text);
