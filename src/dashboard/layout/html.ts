/** Escaped markup. */
export class Html {
  constructor(private readonly markup: string) {}

  toString(): string {
    return this.markup;
  }
}

export type Part = Html | string | number | undefined | null | false | readonly Part[];

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

// Embeddings, overrides and isolates of text direction, which would also reorder the text after a value.
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

const escape = (text: string) =>
  text.replace(DIRECTIONS, '').replace(/[&<>"']/g, (character) => ENTITIES[character]!);

function render(part: Part): string {
  if (part instanceof Html) return part.toString();
  if (Array.isArray(part)) return part.map(render).join('');
  if (part === undefined || part === null || part === false) return '';
  return escape(String(part));
}

/** Escapes every value in the template that is not Html itself. */
export const html = (strings: TemplateStringsArray, ...parts: Part[]): Html =>
  new Html(strings.map((text, i) => text + (i < parts.length ? render(parts[i]) : '')).join(''));
