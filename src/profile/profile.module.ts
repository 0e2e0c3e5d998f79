import { Module } from '@nestjs/common';
import { GamesModule } from '../games/games.module';
import { UsersModule } from '../users/users.module';
import { ProfileController } from './profile.controller';

@Module({ imports: [UsersModule, GamesModule], controllers: [ProfileController] })
export class ProfileModule {}
