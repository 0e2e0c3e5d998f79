/** A problem that the operator can solve. It is printed without a stack, and the process exits with 1. */
export class OperatorError extends Error {}

/** The words of a command are wrong or incomplete: exit code 2. */
export class UsageError extends OperatorError {}
