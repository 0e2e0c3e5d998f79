import { load } from './typescript.mjs';

load('../../../src/wharf/zip/signature.worker.ts');
