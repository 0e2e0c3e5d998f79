import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Settings } from '../../platform/config/settings';
import { ExpiredRows } from '../../platform/database/expired-rows';
import { AttemptsService } from './attempts.service';
import { PasswordCost } from './password-hash';
import { PasswordQueue } from './password-queue';
import { Session } from './session.entity';
import { SessionsService } from './sessions.service';

@Module({
  imports: [TypeOrmModule.forFeature([Session])],
  providers: [AttemptsService, PasswordCost, PasswordQueue, SessionsService],
  exports: [AttemptsService, PasswordCost, PasswordQueue, SessionsService],
})
export class SignInModule {
  constructor(expired: ExpiredRows, { SESSION_IDLE_MINUTES }: Settings) {
    const idle = `seen_at < now() - make_interval(mins => ${SESSION_IDLE_MINUTES})`;
    expired.register('sessions', 'token_hash', `expires_at < now() OR ${idle}`);
    expired.register('attempts', 'subject', 'expires_at < now()');
  }
}
