import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccountsModule } from '../../dashboard/dashboard.module';
import { User } from '../../users/user.entity';
import { DataController } from '../../dashboard/settings/data.controller';
import { ErasureService } from './erasure.service';
import { ExportService } from './export.service';
import { PeopleController } from './people.controller';
import { People } from './person';

@Module({
  imports: [AccountsModule, TypeOrmModule.forFeature([User])],
  controllers: [PeopleController, DataController],
  providers: [People, ExportService, ErasureService],
})
export class PeopleModule {}
