import { Module } from '@nestjs/common';
import { TokensModule } from '../tokens/tokens.module';
import { ImportController } from './import.controller';
import { ImportLimits } from './import-limits';
import { ImportService } from './import.service';
import { SmallImports } from './small-imports.service';

@Module({
  imports: [TokensModule],
  controllers: [ImportController],
  providers: [ImportLimits, ImportService, SmallImports],
})
export class ImportingModule {}
