import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit';
import { AttemptsService, downloadKeySubject } from '../../auth/sign-in/attempts.service';
import { LibraryService } from '../../purchases/library/library.service';
import type { SignedInVisitor } from '../layout/visitor';

@Injectable()
export class RedemptionService {
  constructor(
    private readonly library: LibraryService,
    private readonly attempts: AttemptsService,
    private readonly audit: Audit,
  ) {}

  /** Redeems a key like `LibraryService.redeem`. If `seconds` is set, there were too many attempts. */
  async redeem({ user, by }: SignedInVisitor, key: string, options: { allowOwned: boolean }) {
    const { found, seconds } = await this.attempts.check(downloadKeySubject(user.id), (db) =>
      this.library.redeem(db, user.id, key, options),
    );
    if (found?.result === 'claimed')
      this.audit.record({
        event: 'download_key.claimed',
        ...by,
        download_key_id: found.download_key_id,
      });
    return { found, seconds };
  }
}
