import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { OperatorPermission } from './operator-may';

/**
 * An operator's program, by its token, or a seller on a page. A command has neither, and has all
 * permissions.
 */
export interface Actor {
  operator?: string;
  rights?: readonly string[];
  request_id?: string;
  user_id?: number;
}

export const may = ({ rights }: Actor, permission: OperatorPermission): boolean =>
  rights?.includes(permission) ?? true;

/** The operator token of the request, which the guard has accepted. */
export const CurrentOperator = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const { operator, id } = context.switchToHttp().getRequest<Request>();
  return { operator: operator!.name, rights: operator!.rights, request_id: id } satisfies Actor;
});
