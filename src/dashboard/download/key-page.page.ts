import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { Settings } from '../../platform/config/settings';
import { StoreLinks } from '../../platform/config/store-links';
import { sendJson, WebResponse } from '../../platform/output/response';
import { keyPath } from '../../platform/server/key-pages';
import { ServiceUrl } from '../../platform/server/service-url';
import { type KeyPageRow, MAX_SOLD_TOGETHER } from '../../purchases/library/library.service';
import type { UploadRow } from '../../uploads/upload.row';
import { Covers } from '../layout/covers';
import { changeForm } from '../layout/fields';
import { html, type Html } from '../layout/html';
import { type FormResult, formToken, type Page } from '../layout/layout';
import { alert, confirmation, day } from '../layout/components';
import type { Visitor } from '../layout/visitor';
import { fileDetails, LIBRARY_PATH } from '../library/library.page';
import type { KeyPageResponse } from './key-page.dto';

interface Shown {
  key: string;
  row: KeyPageRow;
  visitor: Visitor;
  uploads: UploadRow[];
  /** Titles of the other games of the sale. */
  others: string[];
  /** The trait of files for the visitor's platform. */
  platform: string | undefined;
  result: FormResult;
}

class JsonResponse extends WebResponse {
  constructor(private readonly body: object) {
    super();
  }

  sendTo(res: Response): void {
    sendJson(res, 200, JSON.stringify(this.body));
  }
}

@Injectable()
export class KeyPageView {
  constructor(
    private readonly links: StoreLinks,
    private readonly covers: Covers,
    private readonly service: ServiceUrl,
    private readonly settings: Settings,
  ) {}

  json(response: KeyPageResponse): WebResponse {
    return new JsonResponse(response);
  }

  show({ key, row, visitor, uploads, others, platform, result: { problem, ...response } }: Shown): Page {
    const isFor = ({ traits }: UploadRow) =>
      platform !== undefined && traits.some((trait) => trait === platform);
    const sorted = [...uploads.filter(isFor), ...uploads.filter((file) => !isFor(file))];
    const { title, username, display_name, owner_name, slug, cover_url } = row;
    return {
      title,
      ...response,
      single: true,
      formTargets: this.downloadOrigins(uploads),
      main: html`<div class="game-of-key">
          ${this.covers.show(title, cover_url)}
          <div>
            <h1>
              ${this.links.exist ? html`<a href="${this.links.game(owner_name, slug)}">${title}</a>` : title}
            </h1>
            <p class="muted">by ${display_name ?? username}</p>
          </div>
        </div>
        ${problem && alert(problem)}
        <h2>Files</h2>
        ${
          sorted.length === 0
            ? html`<p class="empty">There is nothing to download yet. Come back with the same link.</p>`
            : html`<ul class="downloads">
                ${sorted.map((file) => fileItem(visitor, key, file))}
              </ul>`
        }
        ${librarySection(visitor, key, row)} ${others.length > 0 && soldTogether(others)}`,
    };
  }

  /** Asks a visitor who already owns the game, because redeeming the key gives them nothing. */
  claimAgain(visitor: Visitor, key: string, { title }: KeyPageRow): Page {
    return confirmation(visitor, {
      title: 'Add to your library',
      question: `You already own ${title}. Use this key, too?`,
      details: html`<p>
        You don’t need it: the game is in your library. You can give the link to another player instead, who
        can use it once.
      </p>`,
      fields: html`<input type="hidden" name="again" value="yes" />`,
      action: `${keyPath(key)}/claim`,
      button: 'Use the key',
      back: keyPath(key),
    });
  }

  /** Browsers apply form-action to the redirect to the file. */
  private downloadOrigins(uploads: UploadRow[]): string[] {
    const urls = uploads.flatMap(({ external_url, file_url }) => external_url ?? file_url ?? []);
    const { FILES_S3_ENDPOINT } = this.settings;
    const all = [...urls, this.service.url, ...(FILES_S3_ENDPOINT === undefined ? [] : [FILES_S3_ENDPOINT])];
    return [...new Set(all.map((url) => new URL(url).origin))];
  }
}

function fileItem(visitor: Visitor, key: string, file: UploadRow): Html {
  const { id, filename, display_name, updated_at } = file;
  const name = display_name ?? filename;
  return html`<li>
    <form method="post" action="${keyPath(key)}/files/${id}" class="file">
      ${formToken(visitor)}
      <div>
        <strong>${name}</strong>
        <small class="muted">${fileDetails(file).join(' · ')} · ${day(updated_at)}</small>
      </div>
      <button>Download<span class="hidden"> ${name}</span></button>
    </form>
  </li> `;
}

function librarySection(visitor: Visitor, key: string, { key_owner_id }: KeyPageRow): Html {
  if (key_owner_id !== null)
    return html`${
      key_owner_id === visitor.user?.id &&
      html`<p>This game is in <a href="${LIBRARY_PATH}">your library</a>.</p>`
    }`;
  return html`<h2>Keep it</h2>
    <p>
      ${visitor.user ? 'In your library, you always find the newest files.' : 'Sign in to keep the game in your library.'}
      The link then opens only for your account.
    </p>
    ${changeForm(visitor, { action: `${keyPath(key)}/claim`, button: 'Add to your library' }, undefined, 'stack')}`;
}

const soldTogether = (titles: string[]): Html =>
  html`<h2>Other games of this purchase</h2>
    <p class="muted">Each one has a separate download link.</p>
    <ul class="plain">
      ${titles.slice(0, MAX_SOLD_TOGETHER).map((title) => html`<li>${title}</li>`)}
    </ul>
    ${titles.length > MAX_SOLD_TOGETHER && html`<p class="muted">Only the first ${MAX_SOLD_TOGETHER} are listed.</p>`}`;
