import { Worker } from 'node:worker_threads';
import { Logger } from '@nestjs/common';
import { serviceUnavailable } from '../platform/http/api-error';

interface Job {
  html: string;
  since: number;
  resolve: (clean: string | null) => void;
  reject: (error: unknown) => void;
}

const MAX_WAITING = 100;
// For a text to wait, and as much again to be sanitised: together less than the deadline of a request.
const TIMEOUT = 1000;
const ENDS_WHEN_IDLE_FOR = 30_000;
const MEGABYTES = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/** Sanitises long texts on a thread, which ends when it is idle. After a crash or timeout, which is a 503, a new one starts. */
export class HtmlThread {
  private readonly log = new Logger(HtmlThread.name);
  private worker: Worker | undefined;
  private running: Job | undefined;
  private readonly waiting: Job[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly timeout = TIMEOUT) {}

  sanitise(html: string): Promise<string | null> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length === MAX_WAITING) throw serviceUnavailable();
      this.waiting.push({ html, since: performance.now(), resolve, reject });
      if (!this.running) this.next();
    });
  }

  /** Rejects the running job; a new thread takes the waiting ones. */
  end(): void {
    const { worker, running } = this;
    this.worker = undefined;
    void worker?.terminate();
    if (!running) return;
    running.reject(serviceUnavailable());
    this.next();
  }

  private next(): void {
    clearTimeout(this.timer);
    this.running = this.waiting.shift();
    while (this.running && performance.now() - this.running.since > this.timeout) {
      this.running.reject(serviceUnavailable());
      this.running = this.waiting.shift();
    }
    if (this.running) {
      this.worker ??= this.start();
      this.worker.postMessage(this.running.html);
    }
    this.timer = setTimeout(() => this.end(), this.running ? this.timeout : ENDS_WHEN_IDLE_FOR).unref();
  }

  private start(): Worker {
    const worker = new Worker(require.resolve('./html.worker'), { resourceLimits: MEGABYTES });
    worker.on('message', (clean: string | null) => {
      if (worker !== this.worker) return;
      this.running?.resolve(clean);
      this.next();
    });
    worker.on('error', ({ message }: Error) => this.log.warn(`HTML could not be sanitised: ${message}`));
    worker.on('exit', () => {
      if (worker === this.worker) this.end();
    });
    // After adding the listeners, which would keep the process alive.
    worker.unref();
    return worker;
  }
}

export const htmlThread = new HtmlThread();
