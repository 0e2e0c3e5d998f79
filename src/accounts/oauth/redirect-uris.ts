/** Instead of an address: the answer is shown, to be copied into the application. */
export const OUT_OF_BAND = 'urn:ietf:wg:oauth:2.0:oob';

const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?(?=[/?]|$)/;
// Others mean something in a Content-Security-Policy, which names the host.
const HOST = /^[a-z0-9._-]+(?::\d+)?$|^\[[0-9a-f:.]+\](?::\d+)?$/;
const REVERSE_DOMAIN_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:/i;
// A scheme that a browser handles itself: script, contents, or another protocol than the web's.
const BROWSERS_OWN =
  /^(?:javascript|data|vbscript|file|blob|about|view-source|filesystem|ws|wss|ftp|mailto|tel|intent|urn):/i;

export const isLoopback = (uri: string) => LOOPBACK.test(uri);

/** Whoever holds this address is who the application says it is: no other program can take it over. */
export const isClaimed = (uri: string) => uri.startsWith('https://') || isLoopback(uri);

/** Why an application cannot have this address; undefined: it can. */
export function problemOf(uri: string): string | undefined {
  return isSafe(uri) && (isClaimed(uri) || uri === OUT_OF_BAND || REVERSE_DOMAIN_SCHEME.test(uri))
    ? undefined
    : 'must begin with https://, with http://127.0.0.1 or http://[::1], or with a scheme of your own such as com.example.game:/, and have no fragment';
}

/** Whether a browser may be sent there. Applications that were imported may have names for addresses that are not made today. */
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
  if (url.protocol === 'http:') return isLoopback(uri);
  return !BROWSERS_OWN.test(uri);
}

/** Character by character; only a program on the user's own machine may choose its port, which it cannot know before. */
export function isSameRedirect(registered: string, asked: string): boolean {
  if (registered === asked) return true;
  return isLoopback(registered) && isLoopback(asked) && withoutPort(registered) === withoutPort(asked);
}

const withoutPort = (uri: string) => uri.replace(/^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)):\d+/, '$1');

/** The address with more in its query, or in a fragment: what it had stays. */
export function redirectWith(
  uri: string,
  part: 'query' | 'fragment',
  values: Record<string, string | undefined>,
): string {
  const given = Object.entries(values).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const text = new URLSearchParams(given).toString();
  if (part === 'fragment') return `${uri}#${text}`;
  return `${uri}${uri.includes('?') ? (/[?&]$/.test(uri) ? '' : '&') : '?'}${text}`;
}

/** How a Content-Security-Policy names the address. It has no word for an IPv6 address. */
export function policySource(uri: string): string | undefined {
  if (uri === OUT_OF_BAND) return undefined;
  const url = new URL(uri);
  if (url.hostname.startsWith('[')) return 'http:';
  return url.protocol === 'https:' || url.protocol === 'http:' ? url.origin : url.protocol;
}

/** What a person reads of it. */
export function placeOf(uri: string): string {
  if (uri === OUT_OF_BAND) return 'this page';
  if (isLoopback(uri)) return 'the program on this computer';
  const url = new URL(uri);
  return url.protocol === 'https:' ? url.host : `the application for ${url.protocol}`;
}
