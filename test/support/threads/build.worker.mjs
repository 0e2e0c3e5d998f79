import { load } from './typescript.mjs';

load('../../../src/push/build.worker.ts');
