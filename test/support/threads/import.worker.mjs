import { load } from './typescript.mjs';

load('../../../src/importing/import.worker.ts');
