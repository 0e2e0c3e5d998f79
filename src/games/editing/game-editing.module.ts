import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module';
import { IdempotencyModule } from '../../idempotency/idempotency.module';
import { UploadsModule } from '../../uploads/uploads.module';
import { GameEditsController } from './game-edits.controller';
import { GameEditsService } from './game-edits.service';
import { OwnGamesService } from './own-games.service';

/** Depends on the modules whose records are deleted with a game. */
@Module({
  imports: [AuthModule, IdempotencyModule, UploadsModule],
  controllers: [GameEditsController],
  providers: [GameEditsService, OwnGamesService],
  exports: [GameEditsService, OwnGamesService],
})
export class GameEditingModule {}
