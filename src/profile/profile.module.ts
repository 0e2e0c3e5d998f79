import { Module } from '@nestjs/common';
import { ServerModule } from '../platform/server/server.module';
import { GamesModule } from '../games/games.module';
import { UsersModule } from '../users/users.module';
import { ProfileController } from './profile.controller';

@Module({ imports: [ServerModule, UsersModule, GamesModule], controllers: [ProfileController] })
export class ProfileModule {}
