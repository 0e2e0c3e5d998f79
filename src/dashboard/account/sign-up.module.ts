import { type DynamicModule, Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module';
import { SignInModule } from '../../auth/sign-in/sign-in.module';
import { Settings } from '../../platform/config/settings';
import { UsersModule } from '../../users/users.module';
import { DashboardModule } from '../dashboard.module';
import { SignUpController } from './sign-up.controller';

@Module({
  imports: [AuthModule, DashboardModule, SignInModule, UsersModule],
  controllers: [SignUpController],
})
class SignUpEnabled {}

/** The routes don't exist without SIGN_UP, or if only the provider signs people in. */
@Module({})
export class SignUpModule {
  static with({ SIGN_UP, OIDC_ONLY }: Settings): DynamicModule {
    return { module: SignUpModule, imports: SIGN_UP && !OIDC_ONLY ? [SignUpEnabled] : [] };
  }
}
