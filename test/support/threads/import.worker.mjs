import { load } from './typescript.mjs';

load('../../../src/operator/import/import.worker.ts');
