import { closeSync, openSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock';
import { Settings } from '../config/settings';

// Connections, a quarter as many files (src/uploads/file-responses.ts), a sixteenth as many parts
// (src/uploads/sessions/upload-sessions.controller.ts) and a 32nd as many webhook messages
// (src/operator/webhooks/webhook-deliveries.service.ts) leave some for the database and the log.
const CONNECTIONS_SHARE = 0.7;
const SHORT_SHARE = 0.95;

/** The descriptors of this process: its open files and connections. */
@Injectable()
export class Descriptors {
  /** Infinity if the system doesn't report its limit. */
  max = openFilesLimit();
  private shortSince: number | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly clock: Clock,
  ) {}

  /** MAX_CONNECTIONS, or fewer if the process can't have as many. */
  get maxConnections(): number {
    return Math.max(1, Math.min(this.settings.MAX_CONNECTIONS, Math.floor(this.max * CONNECTIONS_SHARE)));
  }

  /** Whether nearly all descriptors are in use. */
  get areShort(): boolean {
    const areShort = lowestUnused() >= this.max * SHORT_SHARE;
    this.shortSince = areShort ? (this.shortSince ?? this.clock.monotonic()) : undefined;
    return areShort;
  }

  /** How long nearly all descriptors have been in use, at every check. */
  get shortFor(): number {
    return this.areShort ? this.clock.monotonic() - this.shortSince! : 0;
  }
}

/**
 * The lowest unused descriptor. All below it are in use, because a new one always has the lowest unused
 * number.
 */
function lowestUnused(): number {
  try {
    const descriptor = openSync(devNull, 'r');
    closeSync(descriptor);
    return descriptor;
  } catch {
    return Infinity;
  }
}

/** Node raises the soft limit to the hard limit when it starts. */
function openFilesLimit(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(limit ?? Infinity);
  } catch {
    return Infinity;
  }
}
