import type { LoggerService } from '@nestjs/common';
import pino, { type DestinationStream, type Logger } from 'pino';

/** JSON lines on standard output, in batches. Fields that could hold secrets are redacted. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          'authorization',
          'key',
          'password',
          'token',
          '*.authorization',
          '*.key',
          '*.password',
          '*.token',
        ],
      },
    },
    destination ?? new Batches(),
  );
}

const BATCH_LENGTH = 15 * 1024;
const FLUSH_INTERVAL = 1000;

/** Writes to standard output in batches. pino's own buffer computes its whole length at each line. */
class Batches implements DestinationStream {
  private readonly output = pino.destination({ sync: false });
  private lines = '';

  constructor() {
    setInterval(() => this.flush(), FLUSH_INTERVAL).unref();
    process.on('exit', () => this.flushSync());
  }

  write(line: string): void {
    this.lines += line;
    if (this.lines.length >= BATCH_LENGTH) this.flush();
  }

  /** Also called by pino when the process ends. */
  flushSync(): void {
    this.flush();
    this.output.flushSync();
  }

  private flush(): void {
    if (this.lines === '') return;
    this.output.write(this.lines);
    this.lines = '';
  }
}

/** Writes Nest's messages to the same log. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log = (message: unknown, ...rest: unknown[]) => this.write('debug', message, rest);
  error = (message: unknown, ...rest: unknown[]) => this.write('error', message, rest);
  warn = (message: unknown, ...rest: unknown[]) => this.write('warn', message, rest);
  debug = (message: unknown, ...rest: unknown[]) => this.write('debug', message, rest);
  verbose = (message: unknown, ...rest: unknown[]) => this.write('trace', message, rest);
  fatal = (message: unknown, ...rest: unknown[]) => this.write('fatal', message, rest);

  private write(level: 'trace' | 'debug' | 'warn' | 'error' | 'fatal', message: unknown, rest: unknown[]) {
    const context = rest.at(-1);
    this.logger[level](typeof context === 'string' ? { context } : {}, String(message));
  }
}
