/**
 * NestJS as it is usually written: the default adapter, passport, pipes, repositories with relations,
 * class-transformer.
 */
import 'reflect-metadata';
import {
  ClassSerializerInterceptor,
  Controller,
  Get,
  Module,
  Param,
  ParseIntPipe,
  Query,
  UseGuards,
  ValidationPipe,
} from '@nestjs/common';
import { APP_INTERCEPTOR, APP_PIPE, NestFactory } from '@nestjs/core';
import { AuthGuard, PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Type } from 'class-transformer';
import { IsInt, IsString } from 'class-validator';
import { join } from 'node:path';
import type { ApiKey } from '../../../../src/auth/keys/api-key.entity';
import { ApiKey as ApiKeyEntity } from '../../../../src/auth/keys/api-key.entity';
import { CollectionAdmin } from '../../../../src/collections/collection-admin.entity';
import { CollectionGame } from '../../../../src/collections/collection-game.entity';
import { Collection } from '../../../../src/collections/collection.entity';
import { GameAdmin } from '../../../../src/games/game-admin.entity';
import { GameEarning } from '../../../../src/purchases/earnings/game-earning.entity';
import { Game } from '../../../../src/games/game.entity';
import { Naming } from '../../../../src/platform/database/naming';
import { DownloadKey } from '../../../../src/purchases/keys/download-key.entity';
import { PurchaseGame } from '../../../../src/purchases/purchase-game.entity';
import { Purchase } from '../../../../src/purchases/purchase.entity';
import { UserEmail } from '../../../../src/auth/accounts/user-email.entity';
import { User } from '../../../../src/auth/accounts/user.entity';
import { Build } from '../../../../src/wharf/build.entity';
import {
  answered,
  CollectionResponse,
  EntryResponse,
  GameResponse,
  GameWithUserResponse,
  UserResponse,
} from './responses';
import { BearerStrategy, CurrentKey } from './auth';
import { StoreService } from './store.service';
import { ROOT_SCOPES } from '../../../../src/auth/access/scopes';

class PageQuery {
  @Type(() => Number) @IsInt() page: number = 1;
  @Type(() => Number) @IsInt() per_page: number = 100;
}

class LatestQuery {
  @Type(() => Number) @IsInt() game_id: number;
  @IsString() channel_name: string;
}

@Controller()
@UseGuards(AuthGuard('bearer'))
class StoreController {
  constructor(private readonly store: StoreService) {}

  @Get('credentials/info')
  info(@CurrentKey() key: ApiKey) {
    return { type: 'key', scopes: key.scopes ?? ROOT_SCOPES };
  }

  @Get(['profile', 'api/1/key/me'])
  profile(@CurrentKey() key: ApiKey) {
    return { user: answered(UserResponse, key.user!) };
  }

  @Get('profile/games')
  async games(@CurrentKey() key: ApiKey) {
    const games = await this.store.editableGames(key.user_id);
    return { games: games.map((game) => answered(GameResponse, game)) };
  }

  @Get('games/:id')
  async game(@Param('id', ParseIntPipe) id: number, @CurrentKey() key: ApiKey) {
    return { game: answered(GameWithUserResponse, await this.store.game(key.user_id, id)) };
  }

  @Get('collections/:id')
  async collection(@Param('id', ParseIntPipe) id: number, @CurrentKey() key: ApiKey) {
    return { collection: answered(CollectionResponse, await this.store.collection(key.user_id, id)) };
  }

  @Get('collections/:id/collection-games')
  async entries(
    @Param('id', ParseIntPipe) id: number,
    @Query() { page, per_page }: PageQuery,
    @CurrentKey() key: ApiKey,
  ) {
    const entries = await this.store.collectionGames(key.user_id, id, page, per_page);
    return { page, per_page, collection_games: entries.map((entry) => answered(EntryResponse, entry)) };
  }
}

@Controller('wharf')
class WharfController {
  constructor(private readonly store: StoreService) {}

  @Get('latest')
  latest(@Query() { game_id, channel_name }: LatestQuery) {
    return this.store.latest(game_id, channel_name);
  }
}

const TABLES = [
  ApiKeyEntity,
  User,
  UserEmail,
  Game,
  GameAdmin,
  GameEarning,
  Purchase,
  PurchaseGame,
  DownloadKey,
  Collection,
  CollectionAdmin,
  CollectionGame,
  Build,
];

@Module({
  imports: [
    PassportModule,
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: process.env.DATABASE_URL,
      entities: [join(__dirname, '..', '..', '..', '..', 'src', '**', '*.entity.js')],
      namingStrategy: new Naming(),
      parseInt8: true,
      poolSize: Number(process.env.DATABASE_POOL_SIZE),
    }),
    TypeOrmModule.forFeature(TABLES),
  ],
  controllers: [StoreController, WharfController],
  providers: [
    StoreService,
    BearerStrategy,
    { provide: APP_PIPE, useValue: new ValidationPipe({ transform: true }) },
    { provide: APP_INTERCEPTOR, useClass: ClassSerializerInterceptor },
  ],
})
class StockModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create(StockModule, { logger: ['error', 'warn'] });
  app.getHttpServer().keepAliveTimeout = 65_000;
  await app.listen(Number(process.env.PORT), '127.0.0.1');
}

void main();
