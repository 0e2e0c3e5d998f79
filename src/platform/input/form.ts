import type { Request } from 'express';
import { badRequest } from '../errors/api-error';
import { MAX_FORM_BYTES, parseBody } from './body';
import { InvalidValue, NOT_UTF8, Repeated } from './input-values';
import { readText, readTitle } from './readers';

/** The fields of a page's form, or the query of its URL. */
export class Form {
  /** The names before the brackets of fields such as `name[0]`. Collected once, because a form may have 1000 fields. */
  private readonly bracketed: Set<string>;

  constructor(private readonly fields: Record<string, unknown>) {
    const names = Object.keys(fields).filter((name) => name.includes('['));
    this.bracketed = new Set(names.map((name) => name.slice(0, name.indexOf('['))));
  }

  /**
   * The text of a field, or undefined if it was not sent. A repeated field, or one that isn't text, is a bad request.
   */
  text(name: string): string | undefined {
    const value = this.fields[name] ?? undefined;
    if (value instanceof Repeated || this.bracketed.has(name)) throw badRequest(`${name} must be given once`);
    if (value === NOT_UTF8) throw badRequest(`${name} must be valid UTF-8 text`);
    if (value === undefined) return undefined;
    const text = readText(value);
    if (text instanceof InvalidValue) throw badRequest(`${name} ${text.problem}`);
    return text;
  }

  /** The text of a single-line field: line breaks become spaces, as browsers convert text that is pasted into one. */
  line(name: string): string {
    return (this.text(name) ?? '').replace(/\p{Cc}+/gu, ' ').trim();
  }

  /** A single line that is shown as a name; empty if all characters are invisible. */
  title(name: string): string {
    const title = readTitle(this.line(name));
    return typeof title === 'string' ? title : '';
  }

  texts(): [name: string, text: string][] {
    return Object.keys(this.fields).map((name) => [name, this.text(name) ?? '']);
  }

  /** Whether a checkbox is ticked: browsers don't send the others. */
  isChecked(name: string): boolean {
    return this.text(name) !== undefined;
  }
}

/** The fields with values, as in a query. */
export const queryText = (fields: Record<string, string | undefined>): string =>
  new URLSearchParams(
    Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined),
  ).toString();

/** The URL of a page with these fields in its query. */
export function withQuery(path: string, fields: Record<string, string | undefined>): string {
  const query = queryText(fields);
  return query === '' ? path : `${path}?${query}`;
}

export const readQuery = (req: Request): Form => new Form(req.query);

/** Reads the form in the body, and ignores the query. */
export async function readForm(req: Request): Promise<Form> {
  await parseBody(req, MAX_FORM_BYTES);
  return new Form((req.body ?? {}) as Record<string, unknown>);
}
