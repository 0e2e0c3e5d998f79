const TAGS = new Set(
  'p br hr h1 h2 h3 h4 h5 h6 blockquote pre code b strong i em u s del ins sub sup small mark ul ol li a img'.split(
    ' ',
  ),
);
const ATTRIBUTES: Record<string, RegExp> = {
  a: /^(href|title|rel)$/,
  img: /^(src|alt|title|width|height)$/,
  ol: /^(start|reversed)$/,
};
const NONE = /$^/;

/** The reason why HTML is unsafe, by an independent parser, or undefined if it is safe. */
export function unsafeMarkup(html: string): string | undefined {
  for (const [whole, slash, name, rest] of html.matchAll(/<(\/?)([^\s>/]*)([^>]*)>?/g)) {
    const tag = name!.toLowerCase();
    if (!TAGS.has(tag)) return `tag ${whole.slice(0, 40)}`;
    if (slash) continue;
    const given = new Map(
      [...rest!.matchAll(/([^\s=/"]+)(?:="([^"]*)")?/g)].map(([, attribute, value = '']) => [
        attribute!.toLowerCase(),
        value,
      ]),
    );
    for (const [attribute, value] of given) {
      if (!(ATTRIBUTES[tag] ?? NONE).test(attribute)) return `attribute ${attribute} of ${tag}`;
      if (attribute === 'href' && !/^(https?:\/\/|mailto:)/i.test(value))
        return `link to ${value.slice(0, 40)}`;
      if (attribute === 'src' && !/^https:\/\//i.test(value)) return `image from ${value.slice(0, 40)}`;
    }
    if (tag === 'a' && given.has('href') && given.get('rel') !== 'nofollow noopener noreferrer ugc')
      return 'link without rel';
  }
  return undefined;
}
