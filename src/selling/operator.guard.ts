import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { OperatorToken } from '../auth/operator-token';

@Injectable()
export class OperatorGuard implements CanActivate {
  constructor(private readonly token: OperatorToken) {}

  canActivate(context: ExecutionContext): boolean {
    this.token.require(context.switchToHttp().getRequest<Request>());
    return true;
  }
}
