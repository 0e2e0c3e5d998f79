import { Module } from '@nestjs/common';
import { HttpModule } from '../platform/server/http.module';
import { GamesModule } from '../games/games.module';
import { UsersModule } from '../users/users.module';
import { ProfileController } from './profile.controller';

@Module({ imports: [HttpModule, UsersModule, GamesModule], controllers: [ProfileController] })
export class ProfileModule {}
