import type { Lab } from './lab';

export interface Conditions {
  lab: Lab;
  /** Runs with the protection, or without it as the control. */
  guarded: boolean;
  /** Fewer repetitions. */
  quick: boolean;
}

export interface Outcome {
  happened: string;
  /** The violated guarantees. */
  broken: string[];
}

export interface Scenario {
  name: string;
  fault: string;
  promise: string;
  /** What the control lacks; its run must violate the guarantee. */
  control: string;
  /** Excluded from `--quick`. */
  long?: true;
  run(conditions: Conditions): Promise<Outcome>;
}

/** The statements whose condition is true. */
export const violated = (...statements: [boolean, string][]): string[] =>
  statements.filter(([holds]) => holds).map(([, statement]) => statement);
