'use strict';

const { spawn } = require('node:child_process');
const { existsSync, readFileSync } = require('node:fs');
const path = require('node:path');

/** Starts a mock store, or attaches to the one at GAMEWHARF_URL, such as a container in CI. */
exports.startMock = async function startMock({ seed, quirks, port = 0 } = {}) {
  const records = seed === undefined ? undefined : textOfRecords(seed);
  const attached = process.env.GAMEWHARF_URL;
  const { url, api_key, stop } = attached
    ? { url: attached.replace(/\/+$/, ''), api_key: 'gw_test_key', stop: async () => undefined }
    : await startProcess(port, quirks);
  const request = requester(url);
  const reset = async (others) => {
    const chosen = others === undefined ? records : textOfRecords(others);
    await request('POST', '/mock/reset', chosen ?? '', 'application/x-ndjson');
    // A reset goes back to the quirks that the process started with.
    const isKept = quirks === undefined || (!attached && typeof quirks === 'string');
    if (!isKept) await request('PUT', '/mock/quirks', QUIRKS[quirks] ?? quirks);
  };
  try {
    if (records !== undefined || attached || typeof quirks === 'object') await reset();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url,
    apiKey: api_key,
    reset,
    sell: (sale) => request('POST', '/mock/sales', sale),
    refund: (refund) => request('POST', '/mock/refunds', refund),
    token: (token) => request('POST', '/mock/tokens', token),
    fault: async (fault) => (await request('POST', '/mock/faults', fault)).fault,
    clearFaults: async () => void (await request('DELETE', '/mock/faults')),
    requests: async ({ since = 0 } = {}) => (await request('GET', `/mock/requests?since=${since}`)).requests,
    quirks: (changed) =>
      changed === undefined ? request('GET', '/mock/quirks') : request('PUT', '/mock/quirks', changed),
    stop,
  };
};

const QUIRKS = {
  live: { empty_lists: 'object', download_key_required: true },
  none: { empty_lists: 'array', download_key_required: false },
};

/** An array of records, a file's path, or the records as NDJSON. */
function textOfRecords(seed) {
  if (Array.isArray(seed)) return seed.map((record) => JSON.stringify(record)).join('\n');
  if (seed.trim() === '' || seed.trimStart().startsWith('{')) return seed;
  return readFileSync(seed, 'utf8');
}

function requester(url) {
  return async (method, path, body, type = 'application/json') => {
    const response = await fetch(url + path, {
      method,
      ...(body !== undefined && {
        headers: { 'content-type': type },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    }).catch((cause) => {
      throw new Error(`${method} ${url}${path}: no response`, { cause });
    });
    const received = await response.json();
    if (response.ok) return received;
    const errors = received.errors ?? [];
    const error = new Error(`${method} ${path}: ${response.status} ${errors.join(', ')}`);
    throw Object.assign(error, { status: response.status, errors });
  };
}

/** The service of the installed package, or of a clone. */
function command() {
  const script = path.join(__dirname, '..', 'dist', 'src', 'cli.js');
  if (existsSync(script)) return script;
  throw new Error(`${script} doesn't exist: run npm run build once.`);
}

async function startProcess(port, quirks) {
  const set = typeof quirks === 'string' ? quirks : 'live';
  const { DATABASE_URL, NODE_ENV, ...env } = process.env;
  const child = spawn(
    process.execPath,
    [command(), 'mock', '--port', String(port), '--quirks', set],
    // Its IPC channel tells the child when this process ends.
    { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] },
  );
  let problem = '';
  child.stderr.on('data', (chunk) => (problem = (problem + chunk).slice(-10_000)));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const ready = await Promise.race([firstLine(child.stdout), ended.then(() => undefined)]);
  if (ready === undefined) throw new Error(`The mock did not start:\n${problem}`);
  // The process that runs the tests can end without stopping the mock.
  for (const handle of [child, child.stdout, child.stderr, child.channel]) handle.unref();
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    child.kill('SIGTERM');
    await ended;
  };
  const { url, api_key } = JSON.parse(ready);
  return { url, api_key, stop };
}

function firstLine(stream) {
  return new Promise((resolve) => {
    let text = '';
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
  });
}
