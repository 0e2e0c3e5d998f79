import type sanitizeHtml from 'sanitize-html';

// Only when somebody sends HTML: five megabytes, of which most replicas have no need. import() would make all that calls it wait.
// eslint-disable-next-line @typescript-eslint/no-require-imports
const library = () => require('sanitize-html') as typeof sanitizeHtml;

export const MAX_HTML_CHARACTERS = 20_000;
// Parsing takes longer the longer a text is, and what is too long is known only afterwards.
const MAX_UNPARSED = 4 * MAX_HTML_CHARACTERS;

/** Before sanitising: whether there is a chance that enough is taken out. */
export const isWorthSanitising = (html: string) => html.length <= MAX_UNPARSED;

/** Counted in code points, and after sanitising. */
export const fitsHtmlLimit = (html: string | null) =>
  html === null ||
  html.length <= MAX_HTML_CHARACTERS ||
  (html.length <= 2 * MAX_HTML_CHARACTERS && [...html].length <= MAX_HTML_CHARACTERS);

// The one list of what a description or a blurb may hold. After changing it run `gamewharf collections resanitise`.
const ALLOWED: sanitizeHtml.IOptions = {
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
  // What these hold is code, data or another language's text, never prose.
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

// A relative address would mean another page on every page that shows the text.
const LINK = /^(https?:\/\/|mailto:)/i;
const IMAGE = /^https:\/\//i;

// The parser takes time that grows with the square of the depth.
const DEEPEST = 500;
class TooDeep extends Error {}

const PASSES = 5;

/** What is left of a piece of HTML when all but the allowed is taken out; null: nothing. */
export function sanitiseHtml(html: string): string | null {
  if (!/[<>&]/.test(html)) return html.trim() || null;
  let clean = onePass(html);
  // What one pass leaves may read differently the next time: what is stored is what stays as it is. Beyond this length
  // no caller stores it.
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
        if (++depth > DEEPEST) throw new TooDeep();
      },
      onCloseTag: () => void depth--,
    });
  } catch (error) {
    if (error instanceof TooDeep) return library()(withoutTags(html), ALLOWED);
    throw error;
  }
}

const withoutTags = (html: string) => html.replace(/<[^>]*>?/g, '');
