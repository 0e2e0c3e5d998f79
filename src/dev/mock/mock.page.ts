import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Response } from 'express';

const page = readFileSync(join(__dirname, 'assets', 'mock.html'), 'utf8');

const source = (element: 'style' | 'script') => {
  const [, text = ''] = new RegExp(`<${element}>([^]*?)</${element}>`).exec(page) ?? [];
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
};

const POLICY = [
  `default-src 'none'`,
  `style-src ${source('style')}`,
  `script-src ${source('script')}`,
  `connect-src 'self'`,
  'img-src data:',
  `base-uri 'none'`,
  `form-action 'none'`,
  `frame-ancestors 'none'`,
].join('; ');

export function sendMockPage(res: Response): void {
  res.setHeader('Content-Security-Policy', POLICY);
  res.setHeader('Content-Type', 'text/html; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(page));
  res.end(page);
}
