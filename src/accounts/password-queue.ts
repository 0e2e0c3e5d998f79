import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { serviceUnavailable } from '../http/failure';
import { hashPassword, verifyPassword } from './password-hash';

const AT_ONCE = 2;
const MAX_WAITING = 8;

/** A hash takes 19 MB and a core: two at a time, a few may wait, and whoever comes then is told to come back. */
@Injectable()
export class PasswordQueue implements OnApplicationBootstrap {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private decoy: Promise<string> | undefined;

  /** Takes as long for an account that does not exist, or has no password, as for a wrong password. */
  async matches(passwordHash: string | null | undefined, password: string): Promise<boolean> {
    const matches = await this.run(async () =>
      verifyPassword(passwordHash ?? (await this.decoyHash()), password),
    );
    return matches && typeof passwordHash === 'string';
  }

  /** Before the first sign-in, so that the first one is no slower. */
  onApplicationBootstrap(): void {
    void this.decoyHash();
  }

  private decoyHash(): Promise<string> {
    return (this.decoy ??= hashPassword('nobody has this password'));
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
