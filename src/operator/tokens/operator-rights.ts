/** The permissions of operator tokens. */
export const OPERATOR_RIGHTS = {
  import: 'Import records; with `users`, also passwords, API keys and OAuth applications',
  purchases: 'Create and refund purchases',
  users: 'Export and erase personal data',
  metrics: 'Read the metrics',
} as const;

export type OperatorRight = keyof typeof OPERATOR_RIGHTS;

export const ALL_RIGHTS = Object.keys(OPERATOR_RIGHTS) as OperatorRight[];
