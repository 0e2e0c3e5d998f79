import { type DynamicModule, Module } from '@nestjs/common';
import { FrontDoor } from './front-door';
import { LongLists } from './long-lists';
import { Measurements } from '../observability/measurements';
import { OwnAddress } from './own-address';
import { RequestLog } from '../observability/request-log';

@Module({})
export class HttpModule {
  static with(frontDoor: FrontDoor): DynamicModule {
    return {
      module: HttpModule,
      global: true,
      providers: [
        OwnAddress,
        { provide: FrontDoor, useValue: frontDoor },
        { provide: RequestLog, useValue: frontDoor.log },
        { provide: Measurements, useValue: frontDoor.measurements },
        LongLists,
      ],
      exports: [OwnAddress, FrontDoor, RequestLog, Measurements, LongLists],
    };
  }
}
