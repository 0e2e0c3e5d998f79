import sanitize from 'sanitize-html';

const ALLOWED: sanitize.IOptions = {
  allowedTags: [
    'p',
    'br',
    'b',
    'strong',
    'i',
    'em',
    'u',
    's',
    'ul',
    'ol',
    'li',
    'a',
    'img',
    'blockquote',
    'code',
    'pre',
  ],
  allowedAttributes: { a: ['href', 'rel'], img: ['src', 'alt'] },
  allowedSchemes: ['https', 'http', 'mailto'],
  allowedSchemesByTag: { img: ['https'] },
  transformTags: { a: sanitize.simpleTransform('a', { rel: 'nofollow noopener noreferrer' }) },
};

export function sanitiseHtml(html: string): string | null {
  const plain = !/[<>&]/.test(html);
  return (plain ? html : sanitize(html, ALLOWED)).trim() || null;
}
