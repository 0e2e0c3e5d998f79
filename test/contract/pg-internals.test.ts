import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { serialize } from 'pg-protocol';

// The versions for which src/platform/database/pool/pipeline.ts was written.
const WRITTEN_FOR = { pg: '8.23.1', 'pg-pool': '3.14.0', 'pg-protocol': '1.16.1' };

const WHAT_TO_DO = `
src/platform/database/pool/pipeline.ts uses internals of pg, and the installed version differs from the one for which it was
written. Before you change the versions in this test:
  1. Compare with the version before: lib/query.js (submit and the handle... methods of Query), lib/client.js (query() with its
     timeout, _handleErrorMessage, _pulsePipelinedQueryQueue) and lib/connection.js (stream) of pg; lib/index.js (connect, release) of pg-pool; the serializer of pg-protocol.
  2. Change pipeline.ts where they differ in what it uses.
  3. Run the tests that speak through it: npx jest statement-batcher; npx jest --config jest.system.config.js lost-connections; npx jest --config jest.load.config.js faults
What it is for: docs/contributing/decisions/performance.md.`;

const installedVersion = (name: string) =>
  (JSON.parse(readFileSync(join('node_modules', name, 'package.json'), 'utf8')) as { version: string })
    .version;

test('pg is the version for which pipeline.ts was written', () => {
  const installed = Object.fromEntries(
    Object.keys(WRITTEN_FOR).map((name) => [name, installedVersion(name)]),
  );
  const changed = Object.entries(WRITTEN_FOR).filter(([name, version]) => installed[name] !== version);
  if (changed.length > 0)
    throw new Error(
      `${changed.map(([name, version]) => `${name} is ${installed[name]}, not ${version}.`).join('\n')}\n${WHAT_TO_DO}`,
    );
});

test('pg has every internal that pipeline.ts uses', () => {
  const parts: Record<string, unknown> = {
    'Connection.stream': new pg.Connection().stream,
    'utils.prepareValue': (pg as { utils?: { prepareValue?: unknown } }).utils?.prepareValue,
  };
  const { prototype } = pg.Query as unknown as { prototype: Record<string, unknown> };
  for (const name of [
    'submit',
    'handleRowDescription',
    'handleDataRow',
    'handleCommandComplete',
    'handleReadyForQuery',
    'handleError',
  ])
    parts[`Query.${name}`] = prototype[name];
  for (const name of ['parse', 'bind', 'close', 'describe', 'execute', 'sync'] as const)
    parts[`serialize.${name}`] = serialize[name];
  const missing = Object.keys(parts).filter((name) => parts[name] === undefined);
  if (missing.length > 0) throw new Error(`pg has no ${missing.join(', ')}.\n${WHAT_TO_DO}`);
});
