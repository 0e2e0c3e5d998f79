import { Injectable } from '@nestjs/common';
import { Settings } from '../config/settings';
import { ServiceUrl } from './service-url';

/** Pages with the games of a download key: /download/KEY. */
@Injectable()
export class KeyPages {
  constructor(
    private readonly settings: Settings,
    private readonly service: ServiceUrl,
  ) {}

  /** The URL of a key's page; null if KEY_PAGES is off. */
  url(key: string): string | null {
    return this.settings.KEY_PAGES === 'off' ? null : this.service.forLinks + keyPath(key);
  }
}

/** Imported keys can contain any characters. */
export const keyPath = (key: string): string => `/download/${encodeURIComponent(key)}`;
