import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Settings } from '../config/settings';
import { dataSourceOptions, LateDataSource } from './data-source';
import { Database } from './database';
import { ExpiredRows } from './expired-rows';

@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [Settings],
      // Database connects it in the background: the service returns 503 while the server can't be reached.
      useFactory: (settings: Settings) => ({
        ...dataSourceOptions(settings),
        autoLoadEntities: true,
        manualInitialization: true,
      }),
      dataSourceFactory: (options) => Promise.resolve(new LateDataSource(options!)),
    }),
  ],
  providers: [Database, ExpiredRows],
  exports: [Database, ExpiredRows, TypeOrmModule],
})
export class DatabaseModule {}
