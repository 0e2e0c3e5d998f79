import { hashPassword } from '../../src/auth/sign-in/password-hash';
import { type Actor } from './actor';
import { baseUrl, LOW_COST } from './app';
import { sql } from './sql';

export interface Page {
  status: number;
  text: string;
  headers: Headers;
  /** The target of a redirect; a path if it is on the same host. */
  location: string | undefined;
}

export const PASSWORD = 'correct horse battery staple';
let passwordHash: Promise<string> | undefined;

const unescape = (text: string) =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

/**
 * A browser from the server's point of view: keeps cookies, and sends forms with all their fields and the right origin.
 */
export class Browser {
  readonly cookies = new Map<string, string>();
  /** The last page displayed. */
  page: Page = { status: 0, text: '', headers: new Headers(), location: undefined };

  constructor(
    private readonly headers: Record<string, string> = {},
    private readonly base: () => string = baseUrl,
  ) {}

  async get(path: string, headers: Record<string, string> = {}): Promise<Page> {
    return this.request('GET', path, { 'sec-fetch-site': 'none', ...headers });
  }

  /** Does not follow redirects. */
  async post(
    path: string,
    fields: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Page> {
    return this.request(
      'POST',
      path,
      { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', ...headers },
      new URLSearchParams(fields).toString(),
    );
  }

  /**
   * Fills in and sends the form of the last page whose action starts with this; `button` is the one that is clicked.
   */
  async submit(action: string, fields: Record<string, string> = {}, button?: string): Promise<Page> {
    return this.post(action, { ...this.formFields(action, button), ...fields });
  }

  async follow(): Promise<Page> {
    while (this.page.location?.startsWith('/')) await this.get(this.page.location);
    return this.page;
  }

  formFields(action: string, button?: string): Record<string, string> {
    const form = [...this.page.text.matchAll(/<form[^>]*action="([^"]*)"[^>]*>(.*?)<\/form>/gs)].find(
      ([, to]) => unescape(to!) === action,
    );
    if (!form)
      throw new Error(`no form for ${action} on this page (${this.page.status}):\n${this.page.text}`);
    const fields: Record<string, string> = {};
    for (const [, attributes] of form[2]!.matchAll(/<input([^>]*)>/g)) {
      const name = /name="([^"]*)"/.exec(attributes!)?.[1];
      const box = /type="(checkbox|radio)"/.test(attributes!);
      if (name && (!box || / checked/.test(attributes!)))
        fields[unescape(name)] = unescape(/value="([^"]*)"/.exec(attributes!)?.[1] ?? '');
    }
    for (const [, name, value] of form[2]!.matchAll(/<textarea[^>]*name="([^"]*)"[^>]*>(.*?)<\/textarea>/gs))
      fields[name!] = unescape(value!.replace(/^\n/, ''));
    for (const [, name, options] of form[2]!.matchAll(/<select[^>]*name="([^"]*)"[^>]*>(.*?)<\/select>/gs))
      fields[name!] = (/value="([^"]*)"\s+selected/.exec(options!) ?? /value="([^"]*)"/.exec(options!))![1]!;
    const pressed = [...form[2]!.matchAll(/<button([^>]*)>(.*?)<\/button>/gs)].find(
      ([, , text]) => text === button,
    );
    if (button && !pressed) throw new Error(`no button ${button}`);
    const [name, value] = [
      /name="([^"]*)"/.exec(pressed?.[1] ?? ''),
      /value="([^"]*)"/.exec(pressed?.[1] ?? ''),
    ];
    if (name) fields[name[1]!] = unescape(value?.[1] ?? '');
    return fields;
  }

  /** Follows the link with these words on the last page. */
  async click(words: string): Promise<Page> {
    const link = new RegExp(`href="([^"]*)"[^>]*>\\s*${words}\\s*<`).exec(this.page.text);
    if (!link) throw new Error(`no link ${words} on this page (${this.page.status}):\n${this.page.text}`);
    return this.get(unescape(link[1]!));
  }

  async signIn(username: string, password = PASSWORD, return_to?: string): Promise<Page> {
    await this.get(return_to ? `/login?return_to=${encodeURIComponent(return_to)}` : '/login');
    return this.submit('/login', { username, password });
  }

  /** The visible text of the last page. */
  get words(): string {
    const main = /<main[^>]*>(.*)<\/main>/s.exec(this.page.text)?.[1] ?? this.page.text;
    return unescape(main.replace(/<[^>]*>/g, ' '))
      .replace(/\s+/g, ' ')
      .trim();
  }

  private async request(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<Page> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(this.base() + path, {
      method,
      body,
      redirect: 'manual',
      headers: { accept: 'text/html', ...(cookie ? { cookie } : {}), ...headers, ...this.headers },
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ');
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      if (attributes.includes('Max-Age=0')) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    // The nonce differs in each response, so tests compare pages without it.
    const text = (await response.text()).replace(/ nonce="[\w-]{22}"/g, '');
    this.page = {
      status: response.status,
      text,
      headers: response.headers,
      location: response.headers.get('location') ?? undefined,
    };
    return this.page;
  }
}

/** Sets a user's password. */
export async function withPassword(actor: Actor): Promise<Actor> {
  passwordHash ??= hashPassword(PASSWORD, LOW_COST);
  await sql('UPDATE users SET password_hash = $2 WHERE id = $1', [actor.id, await passwordHash]);
  return actor;
}

/** The headers of a browser, for concurrent requests: the browser itself would send one after the other. */
export const cookieHeaders = (browser: Browser) => ({
  accept: 'text/html',
  cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
});

/** A browser in which the user is signed in. */
export async function signInBrowser(actor: Actor, base?: () => string): Promise<Browser> {
  await withPassword(actor);
  const browser = new Browser({}, base);
  await browser.signIn(actor.username);
  if (browser.page.status !== 303)
    throw new Error(`sign-in returned ${browser.page.status}: ${browser.words}`);
  return browser;
}

export const canSignIn = async (name: string, password: string) =>
  (await new Browser().signIn(name, password)).status === 303;

/** A page without the token of its forms, to compare it with another. */
export const withoutFormToken = ({ status, text }: { status: number; text: string }) => [
  status,
  text.replace(/value="[\w-]{43}"/g, ''),
];
