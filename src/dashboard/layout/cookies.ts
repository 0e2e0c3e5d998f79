import type { Request, Response } from 'express';
import type { Settings } from '../../platform/config/settings';

/** Cookies with the attributes of this service: only for its own host, and not for scripts. */
export class Cookies {
  private readonly prefix: string;
  private readonly attributes: string;

  constructor({ PUBLIC_URL }: Settings) {
    const https = PUBLIC_URL?.startsWith('https:') ?? false;
    this.prefix = https ? '__Host-gamewharf_' : 'gamewharf_';
    this.attributes = `; Path=/; HttpOnly; SameSite=Lax${https ? '; Secure' : ''}`;
  }

  get(req: Request, name: string): string | undefined {
    for (const pair of (req.headers.cookie ?? '').split(';')) {
      const equals = pair.indexOf('=');
      if (equals >= 0 && pair.slice(0, equals).trim() === this.prefix + name)
        return pair.slice(equals + 1).trim();
    }
    return undefined;
  }

  /** Replaces a cookie of the same name that the response already sets. Without seconds, the browser decides. */
  set(res: Response, name: string, value: string, seconds?: number): void {
    // A response may have been sent at the deadline of the request.
    if (res.headersSent) return;
    const cookie = `${this.prefix}${name}=`;
    const others = [res.getHeader('Set-Cookie') ?? []].flat().map(String);
    const age = seconds === undefined ? '' : `; Max-Age=${seconds}`;
    res.setHeader('Set-Cookie', [
      ...others.filter((one) => !one.startsWith(cookie)),
      `${cookie}${value}${this.attributes}${age}`,
    ]);
  }
}
