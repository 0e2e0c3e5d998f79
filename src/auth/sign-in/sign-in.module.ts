import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Settings } from '../../platform/config/settings';
import { ExpiredRows } from '../../platform/database/expired-rows';
import { User } from '../accounts/user.entity';
import { AuthModule } from '../auth.module';
import { AttemptsService } from './attempts.service';
import { PasswordCost } from './password-hash';
import { PasswordQueue } from './password-queue';
import { Session } from '../accounts/session.entity';
import { SessionsService } from './sessions.service';
import { SetupService } from './setup.service';
import { SignInService } from './sign-in.service';

const SERVICES = [AttemptsService, PasswordCost, PasswordQueue, SessionsService, SetupService, SignInService];

@Module({
  imports: [AuthModule, TypeOrmModule.forFeature([Session, User])],
  providers: SERVICES,
  exports: SERVICES,
})
export class SignInModule {
  constructor(expired: ExpiredRows, { SESSION_IDLE_MINUTES }: Settings) {
    const idle = `seen_at < now() - make_interval(mins => ${SESSION_IDLE_MINUTES})`;
    expired.register('sessions', 'token_hash', `expires_at < now() OR ${idle}`);
    expired.register('attempts', 'subject', 'expires_at < now()');
  }
}
