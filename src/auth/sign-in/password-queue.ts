import { Injectable } from '@nestjs/common';
import { serviceUnavailable } from '../../platform/http/api-error';
import { decoyHash, verifyPassword } from './password-hash';

const CONCURRENCY = 2;
const MAX_WAITING = 8;

/** Verifies passwords, two at a time, since each takes 19 MB and a core. When the queue is full the answer is 503. */
@Injectable()
export class PasswordQueue {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly decoy = decoyHash();

  /** Takes the same time for an unknown account, an account without a password and a wrong password. */
  async matches(passwordHash: string | null | undefined, password: string): Promise<boolean> {
    const matches = await this.run(() => verifyPassword(passwordHash ?? this.decoy, password));
    return matches && typeof passwordHash === 'string';
  }

  private async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.running === CONCURRENCY) {
      if (this.waiting.length === MAX_WAITING) throw serviceUnavailable();
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    } else this.running++;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.running--;
    }
  }
}
