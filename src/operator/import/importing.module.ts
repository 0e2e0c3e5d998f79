import { Module } from '@nestjs/common';
import { ImportController } from './import.controller';
import { ImportRoom } from './import-room';
import { ImportService } from './import.service';
import { SmallImports } from './small-imports.service';

@Module({ controllers: [ImportController], providers: [ImportRoom, ImportService, SmallImports] })
export class ImportingModule {}
