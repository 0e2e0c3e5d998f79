import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ServerModule } from '../../platform/server/server.module';
import { IdentitiesService } from './identities.service';
import { Identity } from './identity.entity';
import { IdentityProvider } from './identity-provider';

@Module({
  imports: [ServerModule, TypeOrmModule.forFeature([Identity])],
  providers: [IdentitiesService, IdentityProvider],
  exports: [IdentitiesService, IdentityProvider],
})
export class IdentitiesModule {}
