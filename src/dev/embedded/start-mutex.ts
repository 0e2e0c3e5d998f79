import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../../platform/errors/operator-error';

/** Longer than a slow machine takes to create a database. */
const WAIT_TIMEOUT_MS = 60_000;

/** Lets one process at a time inspect a data folder and start its server. The lock is a local socket, which its process releases when it ends. */
export async function withStartMutex<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const name = `gamewharf-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`;
  const socket = process.platform === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`);
  const deadline = Date.now() + WAIT_TIMEOUT_MS;
  let lock = await listen(socket);
  for (; !lock && Date.now() < deadline; lock = await listen(socket)) await sleep(25);
  if (!lock)
    throw new OperatorError(`Another process is still starting the database of ${folder}: try again.`);
  const held = lock;
  try {
    return await work();
  } finally {
    await new Promise((closed) => held.close(closed));
  }
}

async function listen(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  const free = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(name, () => resolve(true));
  });
  if (free) return server.unref();
  // A file socket remains after its process has ended.
  if (name.startsWith('/') && !(await isListening(name))) await rm(name, { force: true });
  return undefined;
}

const isListening = (name: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(name, () => resolve(true));
    socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
  });
