import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Settings } from '../../platform/config/settings';
import { Cookies } from './cookies';
import { HOME, localPath } from './local-path';

const COOKIE = 'return_to';
const DAY_SECONDS = 86_400;
// A cookie has at most 4096 bytes.
const MAX_RETURN_TO = 2000;

/** The page that a visitor came from to sign up, in a cookie, because the account exists only after a link was used. */
@Injectable()
export class ReturnPath {
  private readonly cookies: Cookies;

  constructor(settings: Settings) {
    this.cookies = new Cookies(settings);
  }

  store(res: Response, path: string): void {
    const text = encodeURIComponent(path);
    if (path !== HOME && text.length <= MAX_RETURN_TO) this.cookies.set(res, COOKIE, text, DAY_SECONDS);
  }

  /** Removes the cookie. */
  take(req: Request, res: Response): string {
    const text = this.cookies.get(req, COOKIE);
    if (text === undefined) return HOME;
    this.cookies.set(res, COOKIE, '', 0);
    try {
      return localPath(decodeURIComponent(text));
    } catch {
      return HOME;
    }
  }
}
