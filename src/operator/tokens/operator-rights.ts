/** What an operator's token may do. */
export const OPERATOR_RIGHTS = {
  import: 'Import records; with `users` also what lets somebody in: passwords, API keys, OAuth applications',
  purchases: 'Sell, and take a sale back',
  users: 'Export and erase what is stored about a person',
  metrics: 'Read the metrics',
} as const;

export type OperatorRight = keyof typeof OPERATOR_RIGHTS;

export const ALL_RIGHTS = Object.keys(OPERATOR_RIGHTS) as OperatorRight[];
