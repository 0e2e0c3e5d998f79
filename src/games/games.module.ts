import { Module } from '@nestjs/common';
import { GamesController } from './games.controller';
import { GamesService } from './games.service';

@Module({ controllers: [GamesController], providers: [GamesService], exports: [GamesService] })
export class GamesModule {}
