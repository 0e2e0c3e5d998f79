import { type DynamicModule, Module } from '@nestjs/common';
import { RequestGate } from './request-gate';
import { LongLists } from './long-lists';
import { Measurements } from '../observability/measurements';
import { OwnAddress } from './own-address';
import { RequestLog } from '../observability/request-log';

@Module({})
export class HttpModule {
  static with(gate: RequestGate): DynamicModule {
    return {
      module: HttpModule,
      global: true,
      providers: [
        OwnAddress,
        { provide: RequestGate, useValue: gate },
        { provide: RequestLog, useValue: gate.log },
        { provide: Measurements, useValue: gate.measurements },
        LongLists,
      ],
      exports: [OwnAddress, RequestGate, RequestLog, Measurements, LongLists],
    };
  }
}
