import type { WriteStream } from 'node:tty';
import type { Progress } from '../operator/import/import-records';

// Measured for a first import: the progress when all records are read, and when they are checked.
const PROGRESS_WHEN_READ = 0.35;
const PROGRESS_WHEN_CHECKED = 0.5;
const REDRAW_INTERVAL_MS = 200;
const LINE_INTERVAL_MS = 5000;
const BAR_WIDTH = 24;

interface Shown {
  text: string;
  /** A number from 0 to 1; undefined if it is unknown. */
  share: number | undefined;
}

/** Shows the progress of a command: a bar in a terminal, otherwise a line every few seconds. */
export class ProgressDisplay<State> {
  private readonly started = Date.now();
  private readonly timer: NodeJS.Timeout;
  private state: State | undefined;

  constructor(
    private readonly out: Pick<WriteStream, 'isTTY' | 'write' | 'columns'>,
    private readonly describe: (state: State, seconds: number) => Shown,
  ) {
    this.timer = setInterval(() => this.show(), out.isTTY ? REDRAW_INTERVAL_MS : LINE_INTERVAL_MS);
  }

  report(state: State): void {
    this.state = state;
  }

  stop(): void {
    clearInterval(this.timer);
    if (this.out.isTTY) this.out.write('\r\x1b[K');
  }

  private show(): void {
    if (this.state === undefined) return;
    const { text, share } = this.describe(this.state, (Date.now() - this.started) / 1000);
    if (!this.out.isTTY) {
      this.out.write(`${text}\n`);
      return;
    }
    const line = share === undefined ? text : `${bar(share)} ${text}`;
    this.out.write(`\r\x1b[K${line.slice(0, (this.out.columns || 80) - 1)}`);
  }
}

const bar = (share: number) => {
  const full = Math.round(share * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}]`;
};

function computeShare(state: Progress, totalBytes?: number): number | undefined {
  switch (state.phase) {
    case 'waiting':
      return 0;
    case 'reading':
      return totalBytes ? PROGRESS_WHEN_READ * Math.min(1, state.bytes / totalBytes) : undefined;
    case 'checking':
      return PROGRESS_WHEN_READ;
    case 'writing':
      return PROGRESS_WHEN_CHECKED + (1 - PROGRESS_WHEN_CHECKED) * (state.written / state.records);
  }
}

/** The progress of an import, whose stream has `totalBytes` if that is known. */
export function importProgress(state: Progress, seconds: number, totalBytes?: number): Shown {
  const share = computeShare(state, totalBytes);
  if (state.phase === 'waiting') return { text: 'waiting for another import to finish', share };
  const parts = [`${state.records.toLocaleString('en-US')} records`];
  if (share !== undefined) parts.unshift(`${Math.floor(share * 100)}%`);
  if (state.phase === 'reading' && seconds > 0) {
    parts.push(`${Math.round(state.records / seconds).toLocaleString('en-US')}/s`);
  }
  if (state.phase === 'checking') parts.push('checking');
  if (state.phase === 'writing') parts.push(`writing ${state.table}`);
  if (share && seconds >= 1) parts.push(`${duration((seconds / share) * (1 - share))} left`);
  return { text: parts.join(', '), share };
}

const duration = (seconds: number) => {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
};
