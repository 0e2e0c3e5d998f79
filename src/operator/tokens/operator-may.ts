import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';
import type { OperatorAccess } from '../../auth/access';
import { ACCESS } from '../../platform/http/public';

export const OPERATOR_RIGHTS = {
  import: 'Import records; with `users`, also passwords, API keys and OAuth applications',
  purchases: 'Create and refund purchases',
  users: 'Export and erase personal data',
  metrics: 'Read the metrics',
} as const;

export type OperatorRight = keyof typeof OPERATOR_RIGHTS;

export const ALL_RIGHTS = Object.keys(OPERATOR_RIGHTS) as OperatorRight[];

/** An operator token with this permission; without one, any token. Only for paths under `/operator/`. */
export const OperatorMay = (right?: OperatorRight) =>
  applyDecorators(
    SetMetadata(ACCESS, (right ? `operator:${right}` : 'operator') satisfies OperatorAccess),
    ApiSecurity('operator', right ? [right] : []),
  );
