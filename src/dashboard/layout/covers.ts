import { Injectable } from '@nestjs/common';
import { OwnAddress } from '../../platform/http/own-address';
import { html, type Html } from './html';

const MAX_ORIGINS = 20;
// No character that ends a source or a directive of the policy.
const ORIGIN = /^https?:\/\/[\w.-]+(:\d+)?$/;

/** Cover images, which are often on the store's CDN. */
@Injectable()
export class Covers {
  constructor(private readonly own: OwnAddress) {}

  /** The initial letters of the title are below the image and show until it has loaded, or if it can't. */
  show(title: string, cover_url: string | null): Html {
    const initials = title
      .split(/\s+/)
      .map((word) => /[\p{L}\p{N}]/u.exec(word)?.[0] ?? '')
      .join('')
      .slice(0, 2);
    return html`<span class="cover"
      ><span aria-hidden="true">${initials.toUpperCase()}</span>${
        cover_url !== null && html`<img src="${this.source(cover_url)}" alt="" loading="lazy" />`
      }</span
    >`;
  }

  /** The origins that a page with these covers may load images from. */
  originsOf(games: { cover_url: string | null }[]): string[] {
    const sources = games.map(({ cover_url }) => this.source(cover_url ?? ''));
    const origins = sources.filter((source) => URL.canParse(source)).map((source) => new URL(source).origin);
    return [...new Set(origins.filter((origin) => ORIGIN.test(origin)))].slice(0, MAX_ORIGINS);
  }

  /** A path if this service has the image: browsers may use another name for it than the one it was stored with. */
  private source(cover_url: string): string {
    const own = `${this.own.url}/`;
    return cover_url.startsWith(own) ? cover_url.slice(own.length - 1) : cover_url;
  }
}
