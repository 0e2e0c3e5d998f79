import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module';
import { DataController } from './data.controller';
import { ErasureService } from './erasure.service';
import { ExportService } from './export.service';
import { PeopleController } from './people.controller';
import { People } from './person';

@Module({
  imports: [AccountsModule],
  controllers: [PeopleController, DataController],
  providers: [People, ExportService, ErasureService],
})
export class PeopleModule {}
