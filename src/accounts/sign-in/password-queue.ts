import { Injectable } from '@nestjs/common';
import { serviceUnavailable } from '../../http/failure';
import { hashOfNoPassword, verifyPassword } from './password-hash';

const AT_ONCE = 2;
const MAX_WAITING = 8;

/** A hash takes 19 MB and a core: two at a time, a few may wait, and whoever comes then is told to come back. */
@Injectable()
export class PasswordQueue {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly decoy = hashOfNoPassword();

  /** Takes as long for an account that does not exist, or has no password, as for a wrong password. */
  async matches(passwordHash: string | null | undefined, password: string): Promise<boolean> {
    const matches = await this.run(() => verifyPassword(passwordHash ?? this.decoy, password));
    return matches && typeof passwordHash === 'string';
  }

  private async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.running === AT_ONCE) {
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
