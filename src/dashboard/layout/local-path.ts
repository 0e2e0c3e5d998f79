export const HOME = '/user/settings';
export const IDENTITIES_PATH = '/user/settings/identities';
// The limit of a request's head.
const MAX_ADDRESS = 16 * 1024;

/** A path of this site; HOME for anything that a browser could interpret as another host. */
export function localPath(given: string | undefined): string {
  if (!given?.startsWith('/') || given.length > MAX_ADDRESS) return HOME;
  try {
    const url = new URL(given, 'http://here.invalid');
    // URL has resolved the dots of `/.//host`.
    const path = `${url.pathname}${url.search}`;
    return url.origin === 'http://here.invalid' && !path.startsWith('//') ? path : HOME;
  } catch {
    return HOME;
  }
}
