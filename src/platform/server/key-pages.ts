import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Settings } from '../config/settings';
import { ServiceUrl } from './service-url';

/** Pages with the games of a download key: /download/KEY. */
@Injectable()
export class KeyPages {
  constructor(
    private readonly settings: Settings,
    private readonly service: ServiceUrl,
    private readonly host: HttpAdapterHost,
  ) {}

  /** The URL of a key's page; null if KEY_PAGES is off. Imported keys can contain any characters. */
  url(key: string): string | null {
    if (this.settings.KEY_PAGES === 'off') return null;
    // A command doesn't listen: it uses what the service announced.
    const base = this.host.httpAdapter ? this.service.url : this.service.announced;
    return `${base}/download/${encodeURIComponent(key)}`;
  }
}
