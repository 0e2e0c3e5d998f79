import { type DynamicModule, Module } from '@nestjs/common';
import { FrontDoor } from './front-door';
import { RequestLog } from './request-log';

@Module({})
export class HttpModule {
  static with(frontDoor: FrontDoor, log: RequestLog): DynamicModule {
    return {
      module: HttpModule,
      global: true,
      providers: [
        { provide: FrontDoor, useValue: frontDoor },
        { provide: RequestLog, useValue: log },
      ],
      exports: [FrontDoor, RequestLog],
    };
  }
}
