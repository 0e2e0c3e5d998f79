import { types } from 'node:util';
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
      serializers: { err: describeError },
      redact: ['authorization', 'key', 'password', 'token'].flatMap((name) => [name, `*.${name}`]),
    },
    destination ?? pino.destination({ sync: false, minLength: 4096, periodicFlush: 1000 }),
  );
}

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

// Nest classes whose `log` lists modules and routes at each start.
const VERBOSE = ['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication'];

/** Writes the messages of Nest's Logger to the same log. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log = (...args: unknown[]) => this.write(VERBOSE.includes(args.at(-1) as string) ? 'debug' : 'info', args);
  error = (...args: unknown[]) => this.write('error', args);
  warn = (...args: unknown[]) => this.write('warn', args);
  debug = (...args: unknown[]) => this.write('debug', args);
  verbose = (...args: unknown[]) => this.write('trace', args);
  fatal = (...args: unknown[]) => this.write('fatal', args);

  /** The arguments are messages, then perhaps the stack of an error, then perhaps the context. */
  private write(level: Level, [message, ...rest]: unknown[]): void {
    const context = typeof rest.at(-1) === 'string' && !isStack(rest.at(-1)) ? rest.pop() : undefined;
    const stack = isStack(rest.at(-1)) ? rest.pop() : undefined;
    for (const one of [message, ...rest.filter((other) => other !== undefined)])
      if (one instanceof Error) this.logger[level]({ context, stack, err: one }, describeError(one).message);
      else if (typeof one === 'object') this.logger[level]({ context, stack, ...one });
      else this.logger[level]({ context, stack }, String(one));
  }
}

const isStack = (value: unknown) => typeof value === 'string' && /\n\s+at /.test(value);

/** Omits the parameters and rows contained in errors of TypeORM and pg. */
function describeError(error: unknown) {
  if (!types.isNativeError(error) && !(error instanceof Error)) return { type: typeof error };
  const cause = (error as { driverError?: Error }).driverError ?? error;
  const { code, constraint, routine, statement } = cause as Error & Record<string, unknown>;
  return {
    type: error.name,
    message: cause.message,
    statement,
    code,
    constraint,
    routine,
    stack: error.stack,
  };
}
