import { DataSource } from 'typeorm';
import { OauthApplication } from '../../src/auth/oauth/oauth-application.entity';
import { Database } from '../../src/platform/database/database';
import { dataSourceOptions } from '../../src/platform/database/data-source';
import { faultOf } from '../../src/platform/database/sqlstates';
import { databaseUrl, openApp, useStore } from '../support/store';

useStore();

test('reports that the database is unavailable before its first connection', async () => {
  const source = new DataSource(dataSourceOptions({ DATABASE_URL: databaseUrl(), DATABASE_POOL_SIZE: 1 }));
  const error: unknown = await source
    .getRepository(OauthApplication)
    .findOneBy({ client_id: 'x' })
    .catch((thrown: unknown) => thrown);
  expect(faultOf(error)).toBe('unavailable');
});

test('the token endpoint asks clients to retry while the database is unavailable', async () => {
  const cutOff = await openApp();
  const url = await cutOff.getUrl();
  await cutOff.get(Database).onApplicationShutdown();
  const response = await fetch(`${url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', client_id: 'x', refresh_token: 'x' }),
  });
  expect({ status: response.status, body: await response.json() }).toMatchObject({
    status: 503,
    body: { error: 'temporarily_unavailable', errors: ['service unavailable'] },
  });
  expect(response.headers.get('retry-after')).not.toBeNull();
  await cutOff.close();
});
