import { Injectable } from '@nestjs/common';
import { ConcurrencyLimit, type LimitedClient } from '../../platform/limits/concurrency-limit';
import { decoyHash, hashPassword, isOutdated, PasswordCost, verifyPassword } from './password-hash';

/**
 * Hashes and verifies passwords, two at a time, because each takes 19 MB and a core. Clients alternate. When
 * the queue is full, the response to the client with the most waiting passwords is 503.
 */
@Injectable()
export class PasswordQueue {
  private readonly limit = new ConcurrencyLimit({ accepted: 10, running: 2, each: 2 });
  private readonly decoy: string;

  constructor(private readonly cost: PasswordCost) {
    this.decoy = decoyHash(cost);
  }

  /**
   * Takes the same time for an unknown account, an account without a password and a wrong password. An
   * imported hash of another system takes its own time until it is replaced.
   */
  async matches(
    client: LimitedClient,
    passwordHash: string | null | undefined,
    password: string,
  ): Promise<boolean> {
    const verify = () => verifyPassword(passwordHash ?? this.decoy, password);
    const matches = await this.limit.run(client, undefined, verify);
    return matches && typeof passwordHash === 'string';
  }

  hash(client: LimitedClient, password: string): Promise<string> {
    return this.limit.run(client, undefined, () => hashPassword(password, this.cost));
  }

  /**
   * Returns a hash to store instead of one with a different algorithm or cost, or undefined if it is up to date.
   */
  async renewed(client: LimitedClient, passwordHash: string, password: string): Promise<string | undefined> {
    if (!isOutdated(passwordHash, this.cost)) return undefined;
    return this.limit.run(client, undefined, () => hashPassword(password, this.cost));
  }
}
