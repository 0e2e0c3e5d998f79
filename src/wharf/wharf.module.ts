import { Module } from '@nestjs/common';
import { BuildsService } from './builds.service';
import { WharfController } from './wharf.controller';

@Module({ controllers: [WharfController], providers: [BuildsService], exports: [BuildsService] })
export class WharfModule {}
