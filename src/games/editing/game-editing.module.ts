import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module';
import { IdempotencyModule } from '../../idempotency/idempotency.module';
import { UploadsModule } from '../../uploads/uploads.module';
import { GameEditsController } from './game-edits.controller';
import { GameEditsService } from './game-edits.service';

/** Comes after the modules of what belongs to a game, which is deleted with it. */
@Module({
  imports: [AuthModule, IdempotencyModule, UploadsModule],
  controllers: [GameEditsController],
  providers: [GameEditsService],
  exports: [GameEditsService],
})
export class GameEditingModule {}
