import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { sha256 } from '../../auth/accounts/encryption';
import { Settings } from '../../platform/config/settings';
import { DAY_SECONDS } from '../../platform/formats/durations';
import { Cookies } from './cookies';
import { HOME, localPath } from './local-path';

const AFTER_LINK = 'return_to';
const SECRET_PATHS = 'secret_paths';
const HOUR_SECONDS = 3600;
/** The paths of pages whose URL contains a download key or the token of a link. */
const SECRET_PATH_PATTERN = /^\/(?:download|links)\//i;
/** Several tabs may ask their visitor to sign in. */
const MAX_SECRET_PATHS = 5;
// A cookie has at most 4096 bytes.
const MAX_COOKIE = 2000;

/**
 * The page that a visitor returns to after signing in. `return_to` in a URL contains its path, unless the path
 * contains a secret: such a path is in a cookie, and the URL contains only a name for it.
 */
@Injectable()
export class ReturnPath {
  private readonly cookies: Cookies;

  constructor(settings: Settings) {
    this.cookies = new Cookies(settings);
  }

  /** The value of `return_to` in a URL: the path, or its name in the cookie. */
  refer(req: Request, res: Response, path: string): string {
    if (!SECRET_PATH_PATTERN.test(path)) return path;
    const paths = [path, ...this.secretPaths(req).filter((other) => other !== path)].slice(
      0,
      MAX_SECRET_PATHS,
    );
    while (asText(paths).length > MAX_COOKIE) paths.pop();
    this.cookies.set(res, SECRET_PATHS, asText(paths), HOUR_SECONDS);
    return hashPath(path);
  }

  /** The path of a `return_to`; HOME if it isn't a path of this site, or is a name that the cookie doesn't contain. */
  read(req: Request, return_to: string | undefined): string {
    return localPath(this.secretPaths(req).find((path) => hashPath(path) === return_to) ?? return_to);
  }

  /** Stores the path for a visitor who continues with a link from an email. */
  store(res: Response, path: string): void {
    const text = encodeURIComponent(path);
    if (path === HOME || text.length > MAX_COOKIE) this.cookies.set(res, AFTER_LINK, '', 0);
    else this.cookies.set(res, AFTER_LINK, text, DAY_SECONDS);
  }

  /** Returns the path that `store` stored, and removes it. */
  take(req: Request, res: Response): string {
    const text = this.cookies.get(req, AFTER_LINK);
    if (text === undefined) return HOME;
    this.cookies.set(res, AFTER_LINK, '', 0);
    return localPath(decoded(text));
  }

  private secretPaths(req: Request): string[] {
    const texts = this.cookies.get(req, SECRET_PATHS)?.split('&') ?? [];
    return texts.map((text) => decoded(text) ?? '').filter((path) => SECRET_PATH_PATTERN.test(path));
  }
}

const hashPath = (path: string): string => sha256(path).subarray(0, 12).toString('base64url');

const asText = (paths: string[]): string => paths.map(encodeURIComponent).join('&');

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
