import { Module } from '@nestjs/common';
import { ImportController } from './import.controller';
import { ImportService } from './import.service';
import { SmallImports } from './small-imports.service';

@Module({ controllers: [ImportController], providers: [ImportService, SmallImports] })
export class ImportingModule {}
