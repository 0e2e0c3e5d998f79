export const HOME = '/user/settings';
export const IDENTITIES_PATH = '/user/settings/identities';
// The maximum size of a request's head.
const MAX_PATH_LENGTH = 16 * 1024;

/** A path of this site; HOME for anything that a browser could interpret as another host. */
export function localPath(text: string | undefined): string {
  if (!text?.startsWith('/') || text.length > MAX_PATH_LENGTH) return HOME;
  try {
    const url = new URL(text, 'http://here.invalid');
    // The URL parser resolves the dots of `/.//host`, which leaves `//host`.
    const path = `${url.pathname}${url.search}`;
    return url.origin === 'http://here.invalid' && !path.startsWith('//') ? path : HOME;
  } catch {
    return HOME;
  }
}
