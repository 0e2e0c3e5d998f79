import type { Request } from 'express';
import { badRequest } from './api-error';
import { Given, givenInForm, givenInQuery } from './parameter-sources';
import { readText, Unreadable } from './parameters';

/** The fields of a page's form, or the query of its address. */
export class Form {
  constructor(private readonly given: Given) {}

  /** The text of a field; undefined: not sent. A repeated field, or one that is no text, is a bad request. */
  text(name: string): string | undefined {
    const { values, repeated, undecodable, bracketed } = this.given;
    if (repeated.has(name) || bracketed.has(name)) throw badRequest(`${name} must be given once`);
    if (undecodable.has(name)) throw badRequest(`${name} must be valid UTF-8 text`);
    if (!values.has(name)) return undefined;
    const text = readText(values.get(name));
    if (text instanceof Unreadable) throw badRequest(`${name} ${text.problem}`);
    return text;
  }

  /** A checkbox, which browsers send only when it is ticked. */
  ticked(name: string): boolean {
    return this.text(name) !== undefined;
  }
}

/** The fields that are given, as in a query. */
export const queryText = (fields: Record<string, string | undefined>): string =>
  new URLSearchParams(
    Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined),
  ).toString();

/** The address of a page with these fields in its query. */
export function withQuery(path: string, fields: Record<string, string | undefined>): string {
  const query = queryText(fields);
  return query === '' ? path : `${path}?${query}`;
}

export const queryOf = (req: Request): Form => new Form(givenInQuery(req));

const forms = new WeakMap<Request, Form>();

/** Reads the body once, and ignores the query. */
export async function formOf(req: Request): Promise<Form> {
  let form = forms.get(req);
  if (!form) {
    const given = new Given();
    await givenInForm(req, given);
    form = new Form(given);
    forms.set(req, form);
  }
  return form;
}
