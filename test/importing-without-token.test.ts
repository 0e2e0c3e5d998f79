import { sendImport } from './support/importing';
import { failure, useStore } from './support/store';

useStore();

test('without OPERATOR_TOKEN there is no such route', async () => {
  expect(await sendImport([{ type: 'user', id: 1, username: 'leaf' }])).toEqual(
    failure(404, 'invalid api endpoint'),
  );
});
