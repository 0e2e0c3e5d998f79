import { Injectable } from '@nestjs/common';
import { DEFAULT_STORE_URL, Settings } from './settings';

/** URLs of the store's pages, which this service does not serve. */
@Injectable()
export class StoreLinks {
  private readonly host: string;
  /** Whether a store was configured: pages of the default one don't exist. */
  readonly exist: boolean;

  constructor(settings: Settings) {
    this.host = new URL(settings.STORE_URL).host;
    this.exist = settings.STORE_URL !== DEFAULT_STORE_URL;
  }

  user(username: string): string {
    return `https://${username}.${this.host}`;
  }

  game(username: string, slug: string): string {
    return `https://${username}.${this.host}/${slug}`;
  }

  bundle(id: number, slug: string): string {
    return `https://${this.host}/b/${id}/${slug}`;
  }

  collection(id: number, title: string): string {
    return `https://${this.host}/c/${id}/${encodeURIComponent(slugify(title))}`;
  }
}

const slugify = (title: string) =>
  title
    .normalize('NFKD')
    .replace(/[\p{Mark}'’]/gu, '')
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}]+/gu, '-')
    .replace(/^-|-$/g, '');
