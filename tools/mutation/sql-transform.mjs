import { readFileSync } from 'node:fs';
import swcJest from '@swc/jest';

const settings = new URL('../../test/support/swc.json', import.meta.url);
const swc = swcJest.createTransformer(JSON.parse(readFileSync(settings, 'utf8')));
/** The one change that the tests are run with: tools/mutation/sql-changes.ts. */
const change = JSON.parse(process.env.SQL_CHANGE ?? 'null');

const changed = (source, path) =>
  change && path.endsWith(`/${change.file}`)
    ? source.slice(0, change.start) + change.to + source.slice(change.start + change.from.length)
    : source;

export default {
  canInstrument: false,
  process: (source, path, options) => swc.process(changed(source, path), path, options),
  getCacheKey: (source, path, options) => swc.getCacheKey(changed(source, path), path, options),
};
