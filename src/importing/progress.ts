import type { WriteStream } from 'node:tty';
import type { Progress } from './import-records';

// Measured on a first import: which part of the time is over when all is read, and when all is checked.
const READ = 0.35;
const CHECKED = 0.5;
const REDRAW_MS = 200;
const LINE_MS = 5000;
const BAR_WIDTH = 24;

/** Shows how far an import is: a bar on a terminal, a plain line every few seconds elsewhere. */
export class ProgressDisplay {
  private readonly started = Date.now();
  private readonly timer: NodeJS.Timeout;
  private state: Progress | undefined;

  constructor(
    private readonly out: Pick<WriteStream, 'isTTY' | 'write' | 'columns'>,
    private readonly totalBytes?: number,
  ) {
    this.timer = setInterval(() => this.show(), out.isTTY ? REDRAW_MS : LINE_MS);
  }

  report(state: Progress): void {
    this.state = state;
  }

  stop(): void {
    clearInterval(this.timer);
    if (this.out.isTTY) this.out.write('\r\x1b[K');
  }

  private show(): void {
    if (!this.state) return;
    const seconds = (Date.now() - this.started) / 1000;
    const text = describe(this.state, seconds, this.totalBytes);
    if (!this.out.isTTY) {
      this.out.write(`${text}\n`);
      return;
    }
    const done = shareOf(this.state, this.totalBytes);
    const line = done === undefined ? text : `${bar(done)} ${text}`;
    this.out.write(`\r\x1b[K${line.slice(0, (this.out.columns || 80) - 1)}`);
  }
}

const bar = (share: number) => {
  const full = Math.round(share * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}]`;
};

/** How much of the whole time is over; undefined where nobody knows how much is still to come. */
export function shareOf(state: Progress, totalBytes?: number): number | undefined {
  switch (state.phase) {
    case 'waiting':
      return 0;
    case 'reading':
      return totalBytes ? READ * Math.min(1, state.bytes / totalBytes) : undefined;
    case 'checking':
      return READ;
    case 'writing':
      return CHECKED + (1 - CHECKED) * (state.written / state.records);
  }
}

export function describe(state: Progress, seconds: number, totalBytes?: number): string {
  if (state.phase === 'waiting') return 'another import is running: waiting for it';
  const share = shareOf(state, totalBytes);
  const parts = [`${state.records.toLocaleString('en-US')} records`];
  if (share !== undefined) parts.unshift(`${Math.floor(share * 100)} %`);
  if (state.phase === 'reading' && seconds > 0) {
    parts.push(`${Math.round(state.records / seconds).toLocaleString('en-US')}/s`);
  }
  if (state.phase === 'checking') parts.push('checking');
  if (state.phase === 'writing') parts.push(`writing ${state.table}`);
  if (share && seconds >= 1) parts.push(`${duration((seconds / share) * (1 - share))} left`);
  return parts.join(', ');
}

const duration = (seconds: number) => {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
};
