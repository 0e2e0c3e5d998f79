import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createServer, connect, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../../platform/config/operator-error';

/** Longer than a slow machine takes to create a database. */
const WAIT_TIMEOUT_MS = 60_000;

/** Lets one process at a time inspect a data folder and start its server. The lock is a local socket, which its process releases when it ends. */
export async function withStartMutex<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const name = socketName(folder);
  const deadline = Date.now() + WAIT_TIMEOUT_MS;
  let lock = await listen(name);
  while (!lock && Date.now() < deadline) {
    await sleep(25);
    lock = await listen(name);
  }
  if (!lock)
    throw new OperatorError(`Another process is still starting the database of ${folder}: try again.`);
  try {
    return await work();
  } finally {
    await new Promise((closed) => lock.close(closed));
  }
}

function socketName(folder: string): string {
  const name = `gamewharf-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`;
  if (process.platform === 'linux') return `\0${name}`;
  return join(tmpdir(), `${name}.sock`);
}

async function listen(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  const free = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(name, () => resolve(true));
  });
  if (free) return server.unref();
  // A socket that is a file outlives its process.
  if (name.startsWith('/') && !(await isListening(name))) await rm(name, { force: true });
  return undefined;
}

function isListening(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(name, () => resolve(true));
    socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
  });
}
