import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Browser,
  type BrowserContext,
  chromium,
  type BrowserContextOptions,
  type Page,
} from 'playwright-core';
import { runIf } from './run-if';
import { temporaryBase } from './temporary';
import { HANGING } from './time';

const PLACES = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe',
];

/** A browser on this machine, or undefined if there is none. */
export const chromiumPath = PLACES.find((place) => place && existsSync(place));
export const inChromium = runIf(
  chromiumPath !== undefined,
  'Chromium is not installed, and CHROMIUM names none',
);

export const openChromium = async (): Promise<Browser> =>
  chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    // The browser's shared memory is in files in TMPDIR. While a disk is busy, a frame can take minutes.
    env: { ...process.env, TMPDIR: await temporaryBase() },
  });

/** A window that reports what pages must not do: log to the console, or send requests to another host. */
export class Window {
  readonly complaints: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async open(
    browser: Browser,
    base: string,
    { allowed = [], ...options }: BrowserContextOptions & { allowed?: string[] } = {},
  ): Promise<Window> {
    const context = await browser.newContext({ baseURL: base, ...options });
    context.setDefaultTimeout(HANGING);
    const window = new Window(context, await context.newPage());
    const own = [base, ...allowed];
    // A page that was rejected on purpose is not an error.
    window.page.on('console', (message) => {
      if (message.type() === 'error' && !/status of 4\d\d/.test(message.text()))
        window.complaints.push(message.text());
    });
    window.page.on('pageerror', (error) => window.complaints.push(String(error)));
    window.page.on('request', (request) => {
      if (!own.some((origin) => request.url().startsWith(origin)))
        window.complaints.push(`requested ${request.url()}`);
    });
    return window;
  }

  async signIn(username: string, password: string): Promise<void> {
    await this.page.goto('/login');
    await this.page.getByLabel('Username or email address').fill(username);
    await this.page.getByLabel('Password').fill(password);
    await this.page.getByRole('button', { name: 'Sign in' }).click();
    await this.page.locator('.account > summary').waitFor();
    await this.page.goto('/user/settings/api-keys');
  }

  /** The accessible name of the focused element. */
  focused(): Promise<string> {
    return this.page.evaluate(
      `((one) => (one.labels?.[0] ?? one).textContent.trim().replace(/\\s+/g, ' ') || one.getAttribute('aria-label') || one.name || one.id)(document.activeElement)`,
    );
  }

  async tabTo(name: RegExp, key = 'Tab'): Promise<void> {
    for (let i = 0; i < 60; i++) {
      await this.page.keyboard.press(key);
      if (name.test(await this.focused())) return;
    }
    throw new Error(`nothing to tab to is called ${name}`);
  }

  close(): Promise<void> {
    return this.context.close();
  }
}

/** A small app: the URLs that its redirect URI received, and what its page found in the fragment. */
export class ClientApplication {
  readonly received: URL[] = [];
  private constructor(private readonly server: Server) {}

  static async listen(): Promise<ClientApplication> {
    const server = createServer();
    const client = new ClientApplication(server);
    server.on('request', (req, res) => {
      client.received.push(new URL(req.url!, client.origin));
      res.setHeader('content-type', 'text/html');
      res.end(
        '<!doctype html><title>The game</title><link rel="icon" href="data:,"><h1>Welcome to the game</h1>',
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return client;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get callback(): string {
    return `${this.origin}/callback`;
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }
}
