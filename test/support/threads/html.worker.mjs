import { load } from './typescript.mjs';

load('../../../src/collections/html.worker.ts');
