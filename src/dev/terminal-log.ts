import type { WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import type { DestinationStream } from 'pino';

// Control characters move the cursor or start terminal commands.
const UNSAFE = /(?!\n)[\p{Cc}\p{Bidi_Control}]/gu;

interface LogLine {
  level: string;
  msg?: string;
  method?: string;
  route?: string | null;
  status?: number;
  ms?: number;
  address?: string;
  stack?: string;
  err?: { stack?: string };
}

/** Short lines in place of JSON: `GET /profile 200 6 ms`. */
export const terminalLog = (out: Pick<WriteStream, 'write'> & Partial<WriteStream>): DestinationStream => ({
  write(lines: string) {
    const hasColors = out.hasColors?.() === true;
    for (const line of lines.split('\n'))
      if (line !== '') out.write(`${shortened(JSON.parse(line) as LogLine, hasColors)}\n`);
  },
});

function shortened({ level, msg, ...line }: LogLine, hasColors: boolean): string {
  const { method, route, status, ms = 0, address, stack, err } = line;
  const isRequest = status !== undefined;
  const parts = isRequest
    ? [method, route ?? '(unknown path)', status, `${Math.round(ms)} ms`]
    : [level === 'info' ? '' : `${level}:`, msg, address, stack ?? err?.stack];
  const text = parts
    .filter((part) => part !== undefined && part !== '')
    .join(' ')
    .replace(UNSAFE, '');
  if (!hasColors) return text;
  if (isRequest ? status >= 500 : level === 'error' || level === 'fatal')
    return styleText('red', text, { validateStream: false });
  return isRequest && status >= 400 ? styleText('yellow', text, { validateStream: false }) : text;
}
