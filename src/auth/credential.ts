import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { LimitedAs } from '../http/request';

export type { LimitedAs };

/** A verified credential. */
export interface Credential {
  type: 'key' | 'jwt';
  user_id: number;
  /** Sorted, without duplicates. */
  scopes: readonly string[];
  /** The API key, or the one that a JWT was made from; null: a JWT that an operator made. */
  api_key_id: number | null;
  /** The game that a JWT was made for. */
  game_id?: number;
  /** Of a JWT, in seconds since 1970. */
  expires_at?: number;
}

export const limitedAs = ({ api_key_id, user_id }: Credential): LimitedAs => ({
  credential: api_key_id === null ? `user ${user_id}` : `key ${api_key_id}`,
  user: `user ${user_id}`,
});

/** The credential of the request, which the guard has verified. */
export const CurrentCredential = createParamDecorator(
  (_: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<Request>().user as Credential,
);
