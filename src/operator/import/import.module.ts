import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module';
import { TokensModule } from '../tokens/tokens.module';
import { ImportController } from './import.controller';
import { ImportLimits } from './import-limits';
import { ImportService } from './import.service';

@Module({
  imports: [AuthModule, TokensModule],
  controllers: [ImportController],
  providers: [ImportLimits, ImportService],
})
export class ImportModule {}
