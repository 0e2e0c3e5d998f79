import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { User } from './accounts/user.entity';
import { BearerStrategy } from './bearer.strategy';

/** Revokes JWTs before they expire. */
@Injectable()
export class TokenRevocations {
  constructor(
    @InjectEntityManager() private readonly db: EntityManager,
    private readonly verified: BearerStrategy,
  ) {}

  /** Takes effect on other replicas within a second. */
  async revokeAllOf(user_id: number): Promise<void> {
    await this.db.increment(User, { id: user_id }, 'token_generation', 1);
    this.verified.forgetTokens();
  }
}
