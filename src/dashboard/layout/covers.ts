import { Injectable } from '@nestjs/common';
import { Settings } from '../../platform/config/settings';
import { ServiceUrl } from '../../platform/server/service-url';
import { html, type Html } from './html';

/** Cover images of games: those of this service and of COVER_ORIGINS. */
@Injectable()
export class Covers {
  constructor(
    private readonly service: ServiceUrl,
    private readonly settings: Settings,
  ) {}

  /** The initials of the title are below the image and show until it has loaded, or if there is none. */
  show(title: string, cover_url: string | null): Html {
    const source = cover_url === null ? undefined : this.coverSource(cover_url);
    const initials = title
      .split(/\s+/)
      .map((word) => /[\p{L}\p{N}]/u.exec(word)?.[0] ?? '')
      .join('')
      .slice(0, 2);
    return html`<span class="cover"
      ><span aria-hidden="true">${initials.toUpperCase()}</span>${
        source !== undefined && html`<img src="${source}" alt="" loading="lazy" />`
      }</span
    >`;
  }

  /** A path if this service has the image: browsers may use another host name than the stored one. */
  private coverSource(cover_url: string): string | undefined {
    const own = `${this.service.url}/`;
    if (cover_url.startsWith(own)) return cover_url.slice(own.length - 1);
    const isAllowed =
      URL.canParse(cover_url) && this.settings.COVER_ORIGINS.includes(new URL(cover_url).origin);
    return isAllowed ? cover_url : undefined;
  }
}
