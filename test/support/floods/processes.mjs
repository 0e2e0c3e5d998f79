import { load } from '../threads/typescript.mjs';

// Starts a file of this folder without compilation, as in jest.
load(`../floods/${process.argv[2]}.ts`);
