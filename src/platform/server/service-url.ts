import { readFileSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Settings } from '../config/settings';

/** The URL of this service: PUBLIC_URL, or where it listens. Never from the Host header, which clients can forge. */
@Injectable()
export class ServiceUrl {
  constructor(
    private readonly settings: Settings,
    private readonly host: HttpAdapterHost,
  ) {}

  get url(): string {
    return this.settings.PUBLIC_URL ?? this.listening;
  }

  /** With PORT=0 the operating system chooses the port. An operator's command does not listen. */
  get listening(): string {
    const { HOST, PORT } = this.settings;
    const server = this.host.httpAdapter?.getHttpServer() as Server | undefined;
    const port = PORT || ((server?.address() as AddressInfo | null)?.port ?? PORT);
    return `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${port}`;
  }

  /** Tells commands on the same data folder where the service listens: their PORT may differ. */
  announce(): void {
    writeFileSync(this.file, this.url);
  }

  /** The URL that a service on this data folder announced last, for commands. */
  get announced(): string {
    try {
      return readFileSync(this.file, 'utf8');
    } catch {
      return this.url;
    }
  }

  /** The URL in links that a person opens: of this service, or of the one that a command belongs to. */
  get forLinks(): string {
    return this.host.httpAdapter ? this.url : this.announced;
  }

  private get file(): string {
    return join(this.settings.DATA_DIR, 'address');
  }
}
