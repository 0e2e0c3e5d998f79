import { Global, Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { ApiKeysService } from './api-keys.service';
import { BearerStrategy } from './bearer.strategy';

@Global()
@Module({
  imports: [PassportModule],
  providers: [ApiKeysService, BearerStrategy],
  exports: [ApiKeysService],
})
export class AuthModule {}
