import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module';
import { GamesModule } from '../games/games.module';
import { CredentialsController } from './credentials.controller';
import { CredentialsService } from './credentials.service';
import { PublishedKeysController } from './published-keys.controller';

@Module({
  imports: [AuthModule, GamesModule],
  controllers: [CredentialsController, PublishedKeysController],
  providers: [CredentialsService],
})
export class CredentialsModule {}
