import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { Clock } from '../../src/platform/config/clock';
import { S3Storage } from '../../src/uploads/storage/s3-storage';

test('stops sending a file that the storage rejects', async () => {
  const server = createServer({ keepAliveTimeout: 0 }, (_, res) => res.writeHead(403).end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const storage = new S3Storage(
    {
      FILES_S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      FILES_S3_BUCKET: 'games',
      FILES_S3_REGION: 'us-east-1',
      FILES_S3_ACCESS_KEY_ID: 'id',
      FILES_S3_SECRET_ACCESS_KEY: 'secret',
      FILES_URL_SECONDS: 60,
    },
    new Clock(),
  );
  const content = new Readable({ read: () => undefined });
  content.push('the start of a file');
  const closed = new Promise((resolve) => content.once('close', resolve));
  await expect(storage.put('a.zip', 1000, content, new AbortController().signal)).rejects.toThrow(
    'The storage responded with status 403 (no code).',
  );
  await closed;
  server.close();
});
