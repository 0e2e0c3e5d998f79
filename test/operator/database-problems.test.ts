import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Client } from 'pg';
import { apiErrorFor } from '../../src/platform/output/response';
import { migrate } from '../../src/platform/database/migrate';
import { temporaryProblem } from '../../src/platform/database/reachable';
import { OperatorError } from '../../src/platform/errors/operator-error';
import { holdLocks } from '../support/locks';
import { databaseUrl, openApp, useStore } from '../support/app';

useStore();

const migrationProblem = async (url: string) => {
  const error: unknown = await migrate({ DATABASE_URL: url }, () => undefined).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(OperatorError);
  return (error as Error).message;
};
const withOptions = (options: string) => `${databaseUrl()}?${options}`;

let server: Server | undefined;
afterEach(() => server?.close());

/** A server that accepts TLS and then sends something else. */
async function brokenTlsServer(): Promise<string> {
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write('S');
      socket.once('data', () => socket.end('this is not TLS'));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `postgres://somebody:secret@127.0.0.1:${(server.address() as AddressInfo).port}/store?sslmode=require`;
}

describe('TLS errors are reported in one sentence', () => {
  test('a server without TLS', async () => {
    expect(await migrationProblem(withOptions('sslmode=require'))).toMatch(
      /^Can't connect to the database at 127\.0\.0\.1:\d+ over TLS \(The server does not support SSL connections\): check /,
    );
  });

  test('a server that breaks the TLS handshake', async () => {
    const problem = await migrationProblem(await brokenTlsServer());
    expect(problem).toMatch(
      /^Can't connect to the database at 127\.0\.0\.1:\d+ over TLS \(EPROTO\): check its certificate, and sslmode and sslrootcert in DATABASE_URL\.$/,
    );
  });

  test('a missing certificate file', async () => {
    expect(await migrationProblem(withOptions('sslmode=verify-full&sslrootcert=/nowhere/ca.crt'))).toBe(
      "The file /nowhere/ca.crt in DATABASE_URL can't be read (ENOENT): create it, or change DATABASE_URL.",
    );
  });
});

test('a missing server', async () => {
  expect(await migrationProblem('postgres://somebody:secret@127.0.0.1:1/store')).toBe(
    "The database at 127.0.0.1:1 can't be reached (ECONNREFUSED): start it, or change DATABASE_URL.",
  );
});

test('a URL without the password that the server requires', async () => {
  const message = (type: number, body: string) => {
    const head = Buffer.from('R\0\0\0\0\0\0\0\0');
    head.writeInt32BE(8 + body.length, 1);
    head.writeInt32BE(type, 5);
    return Buffer.concat([head, Buffer.from(body)]);
  };
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(message(10, 'SCRAM-SHA-256\0\0'));
      socket.once('data', () => socket.write(message(11, 'r=nonce,s=c2FsdA==,i=4096')));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const disconnected = once(server, 'connection').then(([socket]) => once(socket as Socket, 'close'));
  expect(await migrationProblem(`postgres://somebody@127.0.0.1:${port}/store`)).toBe(
    `The database at 127.0.0.1:${port} requires a password: add it to DATABASE_URL.`,
  );
  await disconnected;
});

describe('a server that rejects the connection', () => {
  const elsewhere = () => databaseUrl().replace(/\/[^/?]+(\?|$)/, '/nowhere$1');

  test('ends the start of the service', async () => {
    await expect(openApp({ DATABASE_URL: elsewhere() })).rejects.toThrow('There is no database nowhere at ');
  });

  test('makes requests of a running service fail with 503', async () => {
    const client = new Client({ connectionString: elsewhere() });
    const error: unknown = await client.connect().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: '3D000' });
    for (const code of ['3D000', '28P01', '28000'])
      expect(apiErrorFor(Object.assign(error as Error, { code }))).toMatchObject({ statusCode: 503 });
  });
});

test('a record that another transaction has locked', async () => {
  await holdLocks('LOCK TABLE users');
  const { query } = await holdLocks(`SET LOCAL lock_timeout = '1ms'`);
  const error: unknown = await query('SELECT FROM users FOR UPDATE').catch((thrown: unknown) => thrown);
  expect(temporaryProblem(error)).toEqual(
    new OperatorError(
      'Another transaction, such as an import, has locked the same records: run the command again when it has ended.',
    ),
  );
});
