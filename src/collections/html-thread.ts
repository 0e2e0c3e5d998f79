import { Worker } from 'node:worker_threads';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { serviceUnavailable } from '../platform/errors/api-error';
import { ConcurrencyLimit } from '../platform/limits/concurrency-limit';

interface Job {
  resolve: (clean: string | null) => void;
  reject: (error: unknown) => void;
}

// One text is sanitized while up to a hundred others wait.
const MAX_ACCEPTED = 101;
// Limits the wait and the sanitizing separately. Together they take less than the deadline of a request.
const SANITIZE_TIMEOUT_MS = 1000;
const THREAD_IDLE_TIMEOUT_MS = 30_000;
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/**
 * Sanitizes long texts on a thread, which ends when it is idle. After a crash or timeout, the response is 503
 * and a new thread starts.
 */
export class HtmlThread implements OnApplicationShutdown {
  private readonly log = new Logger(HtmlThread.name);
  private readonly limit = new ConcurrencyLimit({ accepted: MAX_ACCEPTED, each: 1 });
  private worker: Worker | undefined;
  private running: Job | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly timeout = SANITIZE_TIMEOUT_MS) {}

  sanitize(html: string): Promise<string | null> {
    return this.limit.run(this.limit.anyone, AbortSignal.timeout(this.timeout), () => this.onThread(html));
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
    const worker = new Worker(require.resolve('./html.worker'), { resourceLimits: RESOURCE_LIMITS });
    worker.on('message', (clean: string | null) => {
      if (worker !== this.worker) return;
      this.running?.resolve(clean);
      this.running = undefined;
      this.endAfter(THREAD_IDLE_TIMEOUT_MS);
    });
    worker.on('error', ({ message }: Error) => this.log.warn(`HTML could not be sanitized: ${message}`));
    worker.on('exit', () => {
      if (worker === this.worker) this.end();
    });
    // Must come after the listeners, because adding them would keep the process alive.
    worker.unref();
    return worker;
  }
}

/** The thread of this process: request classes, which use it, have no injected providers. */
export const htmlThread = new HtmlThread();
