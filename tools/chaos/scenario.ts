import type { Lab } from './lab';

export interface Conditions {
  lab: Lab;
  /** With the protection, or as the control without it. */
  guarded: boolean;
  /** Fewer repetitions. */
  quick: boolean;
}

export interface Outcome {
  happened: string;
  /** What was promised and not kept. */
  broken: string[];
}

export interface Scenario {
  name: string;
  fault: string;
  promise: string;
  /** What the control lacks; it must break the promise. */
  control: string;
  /** Left out of `--quick`. */
  long?: true;
  run(conditions: Conditions): Promise<Outcome>;
}

/** Those of the statements that are true. */
export const which = (...statements: [boolean, string][]): string[] =>
  statements.filter(([holds]) => holds).map(([, statement]) => statement);
