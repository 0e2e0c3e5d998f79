import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Settings } from '../config/settings';

/** Where clients reach this service: as configured, or where it listens. Never what a Host header says: any caller can write one. */
@Injectable()
export class OwnAddress {
  constructor(
    private readonly settings: Settings,
    private readonly host: HttpAdapterHost,
  ) {}

  get url(): string {
    const { PUBLIC_URL, HOST } = this.settings;
    return PUBLIC_URL ?? `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${this.port}`;
  }

  /** With PORT=0 the system chooses one; an operator's command listens on none. */
  private get port(): number {
    const { PORT } = this.settings;
    if (PORT !== 0) return PORT;
    const server = this.host.httpAdapter?.getHttpServer() as Server | undefined;
    return (server?.address() as AddressInfo | null)?.port ?? PORT;
  }
}
