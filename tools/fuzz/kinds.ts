import fc, { type Arbitrary } from 'fast-check';
import type { Ask } from '../../test/support/world/message';
import { askFor } from './asks';
import { type Import, imports, runImport } from './imports';
import { runSequence } from './model/sequence';
import { type Step, steps } from './model/steps';
import { restoreRows } from './model/tenant-rows';
import { runSales, type Sales, sales } from './sales';
import { runAsk } from './stateless';
import type { Target } from './target';
import type { Tenant } from '../../test/support/world/world';

/**
 * A kind of case: how cases are generated, and how one is run. A case is JSON and contains everything needed to run it
 * again.
 */
export interface Kind<Case> {
  /** Cases that run concurrently. */
  together: number;
  cases: (target: Target) => Arbitrary<Case>;
  /** Prepares a round of cases. */
  before?: (target: Target) => Promise<void>;
  /** Rejects with a Finding. `tenant` is the lane's own. */
  run: (target: Target, one: Case, tenant: Tenant) => Promise<unknown>;
}

export const KINDS = {
  ask: {
    together: 40,
    cases: ({ operations, tenant }) =>
      fc.oneof(...[...operations.values()].map((operation) => askFor(operation, tenant))),
    // Restores what earlier cases deleted.
    before: ({ sql, tenant }) => restoreRows(sql, tenant),
    run: runAsk,
  } satisfies Kind<Ask>,
  sequence: {
    together: 1,
    cases: () => steps,
    run: (target, one, tenant) => runSequence(target, tenant, one),
  } satisfies Kind<Step[]>,
  import: { together: 1, cases: () => imports, run: runImport } satisfies Kind<Import>,
  sale: {
    together: 1,
    cases: () => sales,
    run: (target, one, tenant) => runSales(target, one, tenant),
  } satisfies Kind<Sales>,
};

export type KindName = keyof typeof KINDS;

export const findKind = (name: KindName) => KINDS[name] as unknown as Kind<unknown>;
