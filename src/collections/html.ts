import type sanitize from 'sanitize-html';

// The library is loaded with the first HTML text, because it takes 5 MB of memory.
// eslint-disable-next-line @typescript-eslint/no-require-imports -- import() would make all callers asynchronous
const library = () => require('sanitize-html') as typeof sanitize;

export const MAX_HTML_CHARACTERS = 20_000;
// Longer texts are not parsed: the result would be too long.
const MAX_UNPARSED_CHARACTERS = 4 * MAX_HTML_CHARACTERS;

export const SHORT_HTML_CHARACTERS = 2000;

/** Whether sanitizing the text may take twenty milliseconds, so that it is done on another thread. */
export const isLongHtml = (value: unknown) =>
  typeof value === 'string' && value.length > SHORT_HTML_CHARACTERS;

/** Whether the text may be short enough after sanitizing. */
export const isWorthSanitizing = (html: string) => html.length <= MAX_UNPARSED_CHARACTERS;

/** Whether sanitized HTML is short enough, in code points. */
export const fitsHtmlLimit = (html: string | null) =>
  html === null ||
  html.length <= MAX_HTML_CHARACTERS ||
  (html.length <= 2 * MAX_HTML_CHARACTERS && [...html].length <= MAX_HTML_CHARACTERS);

// The allow-list of descriptions and blurbs. After a change run `gamewharf collections resanitize`.
const ALLOWED: sanitize.IOptions = {
  allowedTags: [
    ...['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'pre', 'code'],
    ...['b', 'strong', 'i', 'em', 'u', 's', 'del', 'ins', 'sub', 'sup', 'small', 'mark'],
    ...['ul', 'ol', 'li', 'a', 'img'],
  ],
  allowedAttributes: {
    a: ['href', 'title', 'rel'],
    img: ['src', 'alt', 'title', 'width', 'height'],
    ol: ['start', 'reversed'],
  },
  allowedSchemes: ['http', 'https', 'mailto'],
  allowedSchemesByTag: { img: ['https'] },
  allowProtocolRelative: false,
  // The content of these elements isn't prose, so it is removed too.
  nonTextTags: [
    ...['script', 'style', 'noscript', 'template', 'title', 'textarea', 'option', 'xmp', 'plaintext'],
    ...['iframe', 'noembed', 'noframes', 'object', 'svg', 'math'],
  ],
  nestingLimit: 50,
  transformTags: {
    a: (tagName, { rel: _, href, ...attribs }) => ({
      tagName,
      attribs:
        href && LINK.test(href) ? { ...attribs, href, rel: 'nofollow noopener noreferrer ugc' } : attribs,
    }),
    img: (tagName, { src, ...attribs }) => ({
      tagName,
      attribs: src && IMAGE.test(src) ? { src, ...attribs } : attribs,
    }),
  },
  exclusiveFilter: ({ tag, attribs }) => {
    if (tag === 'a' && !attribs.href) return 'excludeTag';
    return tag === 'img' && !attribs.src;
  },
};

// Relative URLs aren't allowed, because they would depend on the page that shows the text.
const LINK = /^(https?:\/\/|mailto:)/i;
const IMAGE = /^https:\/\//i;

// Parsing takes quadratic time in the depth.
const MAX_DEPTH = 500;
class TooDeep extends Error {}

const PASSES = 5;

/** Removes everything that is not allowed. Returns null if nothing remains. */
export function sanitizeHtml(html: string): string | null {
  if (!/[<>&]/.test(html)) return html.trim() || null;
  let clean = onePass(html);
  // The passes repeat until nothing changes, so that sanitizing stored HTML again is a no-op.
  for (let pass = 1; clean.length <= 2 * MAX_HTML_CHARACTERS; pass++) {
    const again = onePass(clean);
    if (again === clean) break;
    clean = pass < PASSES ? again : withoutTags(again);
  }
  return clean.trim() || null;
}

function onePass(html: string): string {
  let depth = 0;
  try {
    return library()(html, {
      ...ALLOWED,
      onOpenTag: () => {
        if (++depth > MAX_DEPTH) throw new TooDeep();
      },
      onCloseTag: () => void depth--,
    });
  } catch (error) {
    if (error instanceof TooDeep) return library()(withoutTags(html), ALLOWED);
    throw error;
  }
}

const withoutTags = (html: string) => html.replace(/<[^>]*>?/g, '');
