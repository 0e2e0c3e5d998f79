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

const escape = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);

// A form sends a value exactly as stored, and no text follows it in its attribute.
const FIELD_VALUE = / value="$/;

function render(part: Part, before: string): string {
  if (part instanceof Html) return part.toString();
  if (Array.isArray(part)) return part.map((one: Part) => render(one, before)).join('');
  if (part === undefined || part === null || part === false) return '';
  const text = String(part);
  return escape(FIELD_VALUE.test(before) ? text : text.replace(DIRECTIONS, ''));
}

/** Escapes every value in the template that is not Html itself. */
export const html = (strings: TemplateStringsArray, ...parts: Part[]): Html =>
  new Html(strings.map((text, i) => text + (i < parts.length ? render(parts[i], text) : '')).join(''));
