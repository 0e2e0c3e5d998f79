/** A problem that the operator can remedy: its message is shown alone, without a stack, and the process exits with 1. */
export class OperatorError extends Error {}
