// Imports one record on each of many connections concurrently. Prints a line when all are sent, and the statuses at the
// end. In its own process, so that its work takes no CPU time from the service:
//   node import-sender.mjs '{"port": 3000, "connections": 1000, "key": "...", "record": {...}}'
import { once } from 'node:events';
import { Agent, request } from 'node:http';

const { port, connections, key, record } = JSON.parse(process.argv[2]);
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' };
const agent = new Agent({ maxSockets: Infinity });
const options = { port, host: '127.0.0.1', agent, method: 'POST', path: '/operator/import', headers };
const statuses = {};
let sent = 0;

async function send(id) {
  const outgoing = request(options);
  outgoing.end(JSON.stringify({ ...record, id }), () => {
    if (++sent === connections) console.log('sent');
  });
  const [res] = await once(outgoing, 'response');
  res.resume();
  statuses[res.statusCode] = (statuses[res.statusCode] ?? 0) + 1;
  await once(res, 'end');
}

await Promise.all(Array.from({ length: connections }, (_, i) => send(i + 1)));
console.log(JSON.stringify(statuses));
