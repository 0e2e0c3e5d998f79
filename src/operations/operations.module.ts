import { Module } from '@nestjs/common';
import { HealthController } from './health.controller';
import { WelcomeController } from './welcome.controller';

@Module({ controllers: [HealthController, WelcomeController] })
export class OperationsModule {}
