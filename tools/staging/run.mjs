// npm run test:staging -- --url https://staging.example, or --local for the production build on its own database
import { dirname, join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { url: { type: 'string' }, local: { type: 'boolean' } } });
if (values.local) {
  await import('./local.mjs');
  process.exit();
}
if (!values.url || !URL.canParse(values.url)) {
  console.error('Specify the service to check: npm run test:staging -- --url https://staging.example');
  console.error(
    'STAGING_API_KEY is the key of an account there; STAGING_OPERATOR_TOKEN, if set, its operator token.',
  );
  process.exit(2);
}
process.env.STAGING_URL = values.url;

const file = join(dirname(fileURLToPath(import.meta.url)), 'staging.test.mjs');
const results = run({ files: [file] });
results.on('test:fail', () => (process.exitCode = 1));
results.compose(new spec()).pipe(process.stdout);
