import { sendImport } from './support/importing';
import { failure, send, useStore } from './support/store';

useStore();

test('without OPERATOR_TOKEN there is no such route', async () => {
  expect(await sendImport([{ type: 'user', id: 1, username: 'leaf' }])).toEqual(
    failure(404, 'invalid api endpoint'),
  );
});

test.each(['/operator/import', '/operator/openapi.json'])('whatever is asked of %s', async (path) => {
  for (const method of ['GET', 'POST', 'PUT', 'OPTIONS'])
    for (const headers of [undefined, { authorization: 'Bearer undefined' }]) {
      const answer = await send(method, path, { headers });
      expect(answer).toMatchObject(failure(404, 'invalid api endpoint'));
      expect(answer.headers.get('allow')).toBeNull();
    }
});
