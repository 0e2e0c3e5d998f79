import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { Settings } from '../../platform/config/settings';
import { WebResponse } from '../../platform/output/response';
import type { Notice, SignedInUser } from '../../auth/sign-in/sessions.service';
import { type Asset, Assets } from './assets';
import { html, type Html } from './html';
import type { Visitor } from './visitor';

export interface Page {
  title: string;
  /** The content, or a function that renders it with the notice of the last redirect. */
  main: Html | ((notice: Notice) => Html);
  status?: number;
  /** The path that the navigation shows as the current one. */
  section?: string;
  search?: string;
  /** Other origins that a form of this page may redirect to: browsers apply form-action to redirects too. */
  formTargets?: string[];
  /** Whether the page is narrow. Such a page has navigation and search only if it belongs to a section. */
  single?: boolean;
  headers?: Record<string, string>;
  /** Whether the page has the full width, for tables. */
  tables?: boolean;
  /** Style sheets in addition to those of every page. */
  styles?: Asset[];
  scripts?: Asset[];
  /** Whether scripts of the page send requests to this service. */
  sendsRequests?: boolean;
}

/** The problem with a submitted form, and the response that shows it. */
export type FormResult = { problem?: string } & Pick<Page, 'status' | 'headers'>;

export class HtmlResponse extends WebResponse {
  constructor(
    private readonly status: number,
    private readonly markup: string,
    private readonly headers: Record<string, string> = {},
    /** The notice that the next page shows. */
    readonly notice?: Notice,
  ) {
    super();
  }

  sendTo(res: Response): void {
    // CORS is for games in a browser, not for pages.
    res.removeHeader('Access-Control-Allow-Origin');
    res.removeHeader('Access-Control-Expose-Headers');
    res.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
    // The forms of this service still send a Referer header.
    if (!res.hasHeader('Referrer-Policy')) res.setHeader('Referrer-Policy', 'same-origin');
    for (const name in this.headers) res.setHeader(name, this.headers[name]!);
    res.statusCode = this.status;
    res.setHeader('Content-Type', 'text/html; charset=utf-8');
    res.setHeader('Content-Length', Buffer.byteLength(this.markup));
    res.end(this.markup);
  }
}

/** Redirects after a form was processed, so that a reload does not repeat it. */
export const seeOther = (location: string, notice?: Notice) =>
  new HtmlResponse(303, '', { Location: location }, notice);

type Section = readonly [path: string, label: string];

export const SALES_PATH = '/user/settings/sales';
export const GAMES_PATH = '/user/settings/games';
export const gamePath = (id: number, tab?: string) =>
  tab === undefined ? `${GAMES_PATH}/${id}` : `${GAMES_PATH}/${id}/${tab}`;

export const DEVELOPERS_PATH = '/developers';

/** The path to which the logo links and the start page redirects. */
export const homePath = (user: SignedInUser | undefined): string =>
  user === undefined ? '/login' : user.canEditGames ? SALES_PATH : '/user/games';

/** Shown to developers, who can create games. */
const GAMES: readonly Section[] = [[GAMES_PATH, 'Games']];
/** Shown to users who can edit a game. */
const SELLER: readonly Section[] = [
  ...GAMES,
  [SALES_PATH, 'Sales'],
  ['/user/settings/download-keys', 'Keys'],
  ['/user/settings/webhooks', 'Webhooks'],
];
const PLAYER: readonly Section[] = [['/user/games', 'Library']];
const DEVELOPERS: readonly Section[] = [
  [DEVELOPERS_PATH, 'First request'],
  ['/user/settings/api-keys', 'API keys'],
  ['/user/settings/oauth-apps', 'Your apps'],
  ['/docs', 'API reference'],
];
const ACCOUNT: readonly Section[] = [
  ['/user/settings/account', 'Account'],
  ['/user/settings/authorized-apps', 'Connected apps'],
  ['/user/settings/collections', 'Collections'],
  ['/user/settings/data', 'Your data'],
];

const PROVIDERS: readonly Section[] = [['/user/settings/identities', 'Connected providers']];

const PROBLEM = / (role="alert"|aria-invalid="true")/;

/** The layout of every page: name, navigation and Content-Security-Policy. */
@Injectable()
export class Layout {
  constructor(
    private readonly settings: Settings,
    private readonly assets: Assets,
  ) {}

  show(visitor: Visitor | undefined, page: Page, notice: Notice = {}): HtmlResponse {
    const nonce = randomBytes(16).toString('base64url');
    return new HtmlResponse(page.status ?? 200, this.document(visitor, page, notice, nonce).toString(), {
      'Content-Security-Policy': policy(page, this.settings, nonce),
      ...page.headers,
    });
  }

  private document(
    visitor: Visitor | undefined,
    { title, main, status = 200, single, tables, section = '', search, styles = [], scripts = [] }: Page,
    notice: Notice,
    nonce: string,
  ): Html {
    const { style, script, icon, storeStyle, storeLogo } = this.assets;
    const content = typeof main === 'function' ? main(notice) : main;
    // Screen readers read the title first, so it says that a form was not accepted.
    const hasProblem = status >= 400 && PROBLEM.test(content.toString());
    const user = !single || section !== '' ? visitor?.user : undefined;
    return html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${hasProblem && 'Error: '}${title} · ${this.settings.STORE_NAME}</title>
          <link rel="icon" href="${icon.path}" type="image/svg+xml" />
          ${[style, ...styles].map(({ path }) => html`<link rel="stylesheet" href="${path}" />`)}
          ${storeStyle && html`<link rel="stylesheet" href="${storeStyle.path}" />`}
          ${[script, ...scripts].map(({ path }) => html`<script src="${path}" nonce="${nonce}" defer></script>`)}
        </head>
        <body>
          <a class="skip" href="#main">Skip to content</a>
          <header class="top">
            <div class="bar">
              <a class="brand" href="/"
                ><img src="${(storeLogo ?? icon).path}" alt="" height="28" /><span
                  >${this.settings.STORE_NAME}</span
                ></a
              >
              ${visitor && user?.canEditGames && searchForm(visitor, search)}
              ${this.account(visitor, section)}
            </div>
            ${user && this.sections(user, section)}
          </header>
          <main id="main" class="${single ? 'single' : 'wide'}${tables && ' tables'}" tabindex="-1">
            ${content}
          </main>
          <footer><a href="${DEVELOPERS_PATH}">Use the API</a> <a href="/docs">API reference</a></footer>
        </body>
      </html> `;
  }

  private account(visitor: Visitor | undefined, section: string): Html {
    if (!visitor || section === '/login') return html``;
    if (!visitor.user) return html`<a class="button quiet" href="/login">Sign in</a>`;
    const name = visitor.user.display_name ?? visitor.user.username;
    return html`<details class="account">
      <summary><span class="who">${name}</span></summary>
      <nav aria-label="Account">
        ${sectionList([...ACCOUNT, ...(this.settings.OIDC_ISSUER === undefined ? [] : PROVIDERS)], section)}
        ${!this.settings.TRUSTED_IDENTITY_HEADER && html`<form method="post" action="/logout">${formToken(visitor)}<button class="quiet">Sign out</button></form>`}
      </nav>
    </details>`;
  }

  private sections({ canEditGames, developer }: SignedInUser, current: string): Html {
    const inDevelopers = DEVELOPERS.some((section) => isIn(section, current));
    const areas: Section[] = [
      ...(canEditGames ? SELLER : developer ? GAMES : []),
      ...PLAYER,
      [inDevelopers ? current : DEVELOPERS_PATH, 'Developers'],
    ];
    return html`<nav aria-label="Main" class="tabs">${sectionList(areas, current)}</nav>
      ${inDevelopers && html`<nav aria-label="Developers" class="tabs under">${sectionList(DEVELOPERS, current)}</nav>`}`;
  }
}

const isIn = ([path]: Section, current: string) => current === path || current.startsWith(`${path}/`);

const sectionList = (sections: readonly Section[], current: string): Html =>
  html`<ul>
    ${sections.map(
      (section) =>
        html`<li>
          <a href="${section[0]}" ${isIn(section, current) && html` aria-current="page"`}>${section[1]}</a>
        </li> `,
    )}
  </ul>`;

/** The form is sent as POST, so that no email address is in a URL. */
const searchForm = (visitor: Visitor, term = ''): Html =>
  html`<form method="post" action="${SALES_PATH}/search" class="search" role="search">
    ${formToken(visitor)}
    <input
      type="search"
      name="term"
      value="${term}"
      required
      maxlength="700"
      aria-label="Find a sale or buyer"
      placeholder="Find a sale or buyer"
      autocapitalize="none"
      autocomplete="off"
      spellcheck="false"
    />
    <button class="quiet">Search</button>
  </form>`;

export const formToken = (visitor: Visitor): Html =>
  html`<input type="hidden" name="form_token" value="${visitor.formToken}" />`;

const policy = (
  { formTargets = [], sendsRequests }: Page,
  { COVER_ORIGINS, OIDC_ISSUER }: Settings,
  nonce: string,
): string => {
  // The sign-out redirects to the provider.
  const provider = OIDC_ISSUER === undefined ? [] : [new URL(OIDC_ISSUER).origin];
  return [
    `default-src 'none'`,
    `style-src 'self'`,
    // A nonce is used because 'self' would include the uploaded files under /files/.
    `script-src 'nonce-${nonce}'`,
    `img-src ${["'self'", ...COVER_ORIGINS].join(' ')}`,
    ...(sendsRequests ? [`connect-src 'self'`] : []),
    `form-action ${["'self'", ...provider, ...formTargets].join(' ')}`,
    `base-uri 'none'`,
    `frame-ancestors 'none'`,
  ].join('; ');
};
