import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { OperatorPermission } from './operator-may';

/**
 * An operator's program, by its token, or a seller on a page. A command has neither, and has all
 * permissions.
 */
export interface Actor {
  operator?: string;
  permissions?: readonly string[];
  request_id?: string;
  user_id?: number;
}

export const may = ({ permissions }: Actor, permission: OperatorPermission): boolean =>
  permissions?.includes(permission) ?? true;

/** The operator token of the request, which the guard has accepted. */
export const CurrentOperator = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const { operator, id } = context.switchToHttp().getRequest<Request>();
  return { operator: operator!.name, permissions: operator!.permissions, request_id: id } satisfies Actor;
});
