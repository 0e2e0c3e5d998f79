import { connect } from 'node:net';
import { baseUrl } from './app';
import { HANGING } from './time';

interface RawResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
  ms: number;
}

/**
 * Sends bytes that no HTTP client would, in several chunks, and reads the response until the server closes or has sent
 * everything.
 */
export function sendRaw(
  bytes: string | Buffer | string[],
  { timeout = HANGING, base = baseUrl() }: { timeout?: number; base?: string } = {},
): Promise<RawResponse> {
  const { hostname, port } = new URL(base);
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      const [first = '', ...others] = Array.isArray(bytes) ? bytes : [bytes];
      socket.write(first);
      others.forEach((piece, i) => setTimeout(() => socket.write(piece), (i + 1) * 20));
    });
    let text = '';
    const finish = () => {
      socket.destroy();
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return reject(new Error(`no response: ${JSON.stringify(text)}`));
      const [first = '', ...lines] = text.slice(0, end).split('\r\n');
      resolve({
        status: Number(first.split(' ')[1]),
        headers: Object.fromEntries(
          lines.map((line) => [
            line.slice(0, line.indexOf(':')).toLowerCase(),
            line.slice(line.indexOf(':') + 1).trim(),
          ]),
        ),
        body: text.slice(end + 4),
        ms: performance.now() - started,
      });
    };
    socket.setTimeout(timeout, finish);
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const length = /content-length: (\d+)/i.exec(text)?.[1];
      const end = text.indexOf('\r\n\r\n');
      if (length !== undefined && end >= 0 && text.length >= end + 4 + Number(length)) finish();
    });
    socket.on('end', finish);
    socket.on('error', (error) => (text ? finish() : reject(error)));
  });
}
