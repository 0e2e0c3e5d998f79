import fc, { type Arbitrary } from 'fast-check';
import type { Ask } from './ask';
import { askFor } from './asks';
import { checkNothingInFlight, type Connection, connections, runConnection } from './connections';
import { type Grant, grants, resetGrants, runGrant } from './grants';
import { type Import, imports, runImport } from './imports';
import { runSequence } from './model/sequence';
import { type Step, steps } from './model/steps';
import { tidy } from './model/tenant-rows';
import { type PageAsk, pageAsks, runPage } from './pages';
import { type Raw, raws, runRaw } from './raw';
import { runSales, type Sales, sales } from './sales';
import { runAsk } from './stateless';
import type { Target } from './target';
import { runTwins, type Twins, twinsOf } from './twins';
import type { Tenant } from './world';

/** A kind of case: how cases are made up, and how one is tried. A case is JSON, and all that is needed to try it again. */
export interface Kind<Case> {
  /** Cases that are tried at once: they do not disturb one another. */
  together: number;
  cases: (target: Target) => Arbitrary<Case>;
  /** What has to be put right before a round of cases. */
  before?: (target: Target) => Promise<void>;
  /** Rejects with a Finding. `tenant` is the lane's own. */
  run: (target: Target, one: Case, tenant: Tenant) => Promise<unknown>;
  /** What must hold when all cases that were tried at once are over. */
  after?: (target: Target) => Promise<void>;
}

export const KINDS = {
  ask: {
    together: 40,
    cases: (target) =>
      fc.oneof(...[...target.operations.values()].map((operation) => askFor(operation, target.tenant))),
    // What they delete they would not find again.
    before: (target) => tidy(target.sql, target.tenant),
    run: runAsk,
  } satisfies Kind<Ask>,
  twins: { together: 20, cases: twinsOf, run: runTwins } satisfies Kind<Twins>,
  sequence: {
    together: 1,
    cases: () => steps,
    run: (target, one, tenant) => runSequence(target, tenant, one),
  } satisfies Kind<Step[]>,
  grant: {
    together: 1,
    cases: () => grants,
    run: async (target, one) => {
      await resetGrants(target);
      await runGrant(target, one);
    },
  } satisfies Kind<Grant>,
  page: { together: 20, cases: () => pageAsks, run: runPage } satisfies Kind<PageAsk>,
  import: { together: 1, cases: () => imports, run: runImport } satisfies Kind<Import>,
  sale: {
    together: 1,
    cases: () => sales,
    run: (target, one, tenant) => runSales(target, one, tenant),
  } satisfies Kind<Sales>,
  raw: { together: 10, cases: () => raws, run: runRaw } satisfies Kind<Raw>,
  connection: {
    together: 30,
    cases: () => connections,
    run: runConnection,
    after: checkNothingInFlight,
  } satisfies Kind<Connection>,
};

export type KindName = keyof typeof KINDS;

export const kindOf = (name: KindName) => KINDS[name] as unknown as Kind<unknown>;
