// The bill of materials of what runs in production, as CycloneDX: node tools/scripts/sbom.mjs [FILE]
// It includes the packages of every platform and the embedded database; an image contains its own, of its packages.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { billOfMaterials } from './bill-of-materials.mjs';
import { forProduction } from './production-packages.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
const bill = billOfMaterials(forProduction(lock));
const text = `${JSON.stringify(bill, null, 2)}\n`;
const [file] = process.argv.slice(2);
if (file) {
  writeFileSync(file, text);
  console.log(`${file}: ${bill.components.length} packages`);
} else process.stdout.write(text);
