import { Module } from '@nestjs/common';
import { ImportController } from './import.controller';
import { ImportLimits } from './import-limits';
import { ImportService } from './import.service';
import { SmallImports } from './small-imports.service';

@Module({ controllers: [ImportController], providers: [ImportLimits, ImportService, SmallImports] })
export class ImportingModule {}
