import { queryText } from '../../platform/input/form';

/** Replaces a redirect URI: the page shows the code or token, and the user copies it. */
export const OUT_OF_BAND = 'urn:ietf:wg:oauth:2.0:oob';

const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?(?=[/?]|$)/;
// Other characters have a meaning in a Content-Security-Policy, which includes the host.
const HOST = /^[a-z0-9._-]+(?::\d+)?$|^\[[0-9a-f:.]+\](?::\d+)?$/;
const REVERSE_DOMAIN_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:/i;
// Schemes that browsers handle themselves.
const BROWSER_SCHEMES =
  /^(?:javascript|data|vbscript|file|blob|about|view-source|filesystem|ws|wss|ftp|mailto|tel|intent|urn):/i;

export const isLoopbackUri = (uri: string) => LOOPBACK.test(uri);

/** Whether no other program can receive requests at this URI. */
export const isExclusive = (uri: string) => uri.startsWith('https://') || isLoopbackUri(uri);

/** The reason why an app cannot register this URI, or undefined if it can. */
export function findProblem(uri: string): string | undefined {
  return isSafe(uri) && (isExclusive(uri) || uri === OUT_OF_BAND || REVERSE_DOMAIN_SCHEME.test(uri))
    ? undefined
    : 'must begin with https://, with http://127.0.0.1, http://[::1] or http://localhost, or with your own scheme such as com.example.game:/, and have no fragment';
}

/** Whether a browser may be redirected to the URI. Imported apps may have URIs that `findProblem` rejects. */
export function isSafe(uri: string): boolean {
  if (uri === OUT_OF_BAND) return true;
  if (!/^[\x21-\x7e]{1,2000}$/.test(uri) || /[#\\"<>*]/.test(uri)) return false;
  let url: URL;
  try {
    url = new URL(uri);
  } catch {
    return false;
  }
  if (url.username !== '' || url.password !== '') return false;
  if (url.protocol === 'https:') return /^https:\/\/[^/]/.test(uri) && HOST.test(url.host);
  if (url.protocol === 'http:') return isLoopbackUri(uri);
  return !BROWSER_SCHEMES.test(uri);
}

/** An exact match, except for the port of a loopback URI (RFC 8252). */
export function isSameRedirect(registered: string, requested: string): boolean {
  if (registered === requested) return true;
  return (
    isLoopbackUri(registered) &&
    isLoopbackUri(requested) &&
    withoutPort(registered) === withoutPort(requested)
  );
}

const withoutPort = (uri: string) => uri.replace(/^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)):\d+/, '$1');

/** Adds values to the query of the URI, or as its fragment. */
export function redirectWith(
  uri: string,
  part: 'query' | 'fragment',
  values: Record<string, string | undefined>,
): string {
  const text = queryText(values);
  if (part === 'fragment') return `${uri}#${text}`;
  return `${uri}${uri.includes('?') ? (/[?&]$/.test(uri) ? '' : '&') : '?'}${text}`;
}

/** The sources of the URI in a Content-Security-Policy, which cannot contain IPv6 hosts. */
export function listFormTargets(uri: string): string[] {
  if (uri === OUT_OF_BAND) return [];
  const url = new URL(uri);
  if (url.hostname.startsWith('[')) return ['http:'];
  return [url.protocol === 'https:' || url.protocol === 'http:' ? url.origin : url.protocol];
}

export function describeTarget(uri: string): string {
  if (uri === OUT_OF_BAND) return 'this page';
  if (isLoopbackUri(uri)) return 'the program on this computer';
  const url = new URL(uri);
  return url.protocol === 'https:' ? url.host : `the app that opens ${url.protocol} links`;
}
