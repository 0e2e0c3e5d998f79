import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';
import type { OperatorAccess } from '../../auth/access/access';
import { ACCESS_METADATA } from '../../platform/server/public';

export const OPERATOR_PERMISSIONS = {
  import: 'Import records; with `users`, also passwords, API keys and apps',
  purchases: 'Create and refund purchases',
  users: 'Export and erase personal data; create links that sign in as any user',
  metrics: 'Read the metrics',
} as const;

export type OperatorPermission = keyof typeof OPERATOR_PERMISSIONS;

export const ALL_PERMISSIONS = Object.keys(OPERATOR_PERMISSIONS) as OperatorPermission[];

/**
 * Requires an operator token with this permission, or any token if none is specified. Only for paths under
 * `/operator/`.
 */
export const OperatorMay = (permission?: OperatorPermission) =>
  applyDecorators(
    SetMetadata(
      ACCESS_METADATA,
      (permission ? `operator:${permission}` : 'operator') satisfies OperatorAccess,
    ),
    ApiSecurity('operator', permission ? [permission] : []),
  );
