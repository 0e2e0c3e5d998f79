import { Module } from '@nestjs/common';
import { RequestGate } from './request-gate';
import { LongLists } from './long-lists';
import { Measurements } from '../observability/measurements';
import { OwnAddress } from './own-address';
import { RequestLog } from '../observability/request-log';

const SERVICES = [LongLists, Measurements, OwnAddress, RequestGate, RequestLog];

@Module({ providers: SERVICES, exports: SERVICES })
export class HttpModule {}
