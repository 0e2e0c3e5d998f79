import { Worker } from 'node:worker_threads';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { Clock } from '../platform/config/clock';
import { serviceUnavailable } from '../platform/http/api-error';
import { Semaphore } from '../platform/lifecycle/semaphore';

interface Job {
  resolve: (clean: string | null) => void;
  reject: (error: unknown) => void;
}

const MAX_WAITING = 100;
// For a text to wait, and the same time again to be sanitized: together less than the deadline of a request.
const TIMEOUT = 1000;
const ENDS_WHEN_IDLE_FOR = 30_000;
const MEGABYTES = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/** Sanitizes long texts on a thread, which ends when it is idle. After a crash or timeout, which is a 503, a new one starts. */
export class HtmlThread implements OnApplicationShutdown {
  private readonly log = new Logger(HtmlThread.name);
  private readonly turns: Semaphore;
  private worker: Worker | undefined;
  private running: Job | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    clock: Clock,
    private readonly timeout = TIMEOUT,
  ) {
    this.turns = new Semaphore(clock, { permits: 1, waiting: MAX_WAITING, wait: timeout });
  }

  sanitise(html: string): Promise<string | null> {
    return this.turns.run(() => this.onThread(html), serviceUnavailable);
  }

  /** Rejects the running job; a new thread takes the waiting ones. */
  end(): void {
    const { worker, running } = this;
    this.worker = this.running = undefined;
    clearTimeout(this.timer);
    void worker?.terminate();
    running?.reject(serviceUnavailable());
  }

  onApplicationShutdown(): void {
    this.end();
  }

  private onThread(html: string): Promise<string | null> {
    return new Promise((resolve, reject) => {
      this.running = { resolve, reject };
      this.worker ??= this.start();
      this.worker.postMessage(html);
      this.endAfter(this.timeout);
    });
  }

  private endAfter(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(), milliseconds).unref();
  }

  private start(): Worker {
    const worker = new Worker(require.resolve('./html.worker'), { resourceLimits: MEGABYTES });
    worker.on('message', (clean: string | null) => {
      if (worker !== this.worker) return;
      this.running?.resolve(clean);
      this.running = undefined;
      this.endAfter(ENDS_WHEN_IDLE_FOR);
    });
    worker.on('error', ({ message }: Error) => this.log.warn(`HTML could not be sanitized: ${message}`));
    worker.on('exit', () => {
      if (worker === this.worker) this.end();
    });
    // After the listeners are added, because adding them would keep the process alive.
    worker.unref();
    return worker;
  }
}
