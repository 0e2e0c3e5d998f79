import { NestFactory } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { AppModule } from '../../src/app.module';
import { Settings } from '../../src/platform/config/settings';
import { createLogger } from '../../src/platform/observability/logger';
import { UploadParts } from '../../src/uploads/sessions/upload-parts.service';
import { logged, openApp, theApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

jest.useFakeTimers({
  doNotFake: [
    'Date',
    'nextTick',
    'performance',
    'queueMicrotask',
    'setImmediate',
    'clearImmediate',
    'setTimeout',
    'clearTimeout',
  ],
});
useStore();
afterAll(() => jest.useRealTimers());

test('a failed run is logged once, does the rest of its work, and the next one repeats what failed', async () => {
  const game = await make.game({ owner: await make.user() });
  await sql(
    `INSERT INTO upload_sessions (id, game_id, max_bytes, created_at, expires_at)
     SELECT gen_random_uuid(), $1, 1, now(), now() - interval '1 day' FROM generate_series(1, 2)`,
    [game.id],
  );
  jest.spyOn(theApp().get(UploadParts), 'deleteObjects').mockRejectedValueOnce(new Error('the disk is gone'));
  const failures = () => logged.filter((line) => line.includes('the disk is gone'));

  jest.advanceTimersByTime(50_000);
  await until(() => failures().length > 0);
  expect(await sql('SELECT FROM upload_sessions')).toHaveLength(1);

  jest.advanceTimersByTime(50_000);
  await until(async () => (await sql('SELECT FROM upload_sessions')).length === 0);
  expect(failures().map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'error', context: 'Scheduler', msg: 'the disk is gone' }),
  ]);
});

test('a serving process has these intervals until it closes', async () => {
  const replica = await openApp();
  const names = () => replica.get(SchedulerRegistry).getIntervals().toSorted();
  expect(names()).toEqual([
    'expired rows',
    'signing keys',
    'unfinished builds',
    'unused files',
    'upload sessions',
  ]);
  await replica.close();
  expect(names()).toEqual([]);
});

test('a command has none', async () => {
  const settings = theApp().get(Settings);
  const command = await NestFactory.createApplicationContext(
    AppModule.forCommand(settings, createLogger('silent')),
    { logger: false },
  );
  expect(command.get(SchedulerRegistry).getIntervals()).toEqual([]);
  await command.close();
});
