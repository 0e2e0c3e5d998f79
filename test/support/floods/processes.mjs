import { load } from '../threads/typescript.mjs';

// Starts a file of this folder that is not compiled, as in jest.
load(`../floods/${process.argv[2]}.ts`);
