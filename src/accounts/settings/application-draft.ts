import { SCOPES, type Scope } from '../../auth/scopes';
import type { ApplicationFields } from '../oauth/applications.service';
import { problemOf } from '../oauth/redirect-uris';
import type { Form } from '../web/form';

export const MAX_NAME = 100;
const MAX_ADDRESSES = 20;
export const ALL_SCOPES = Object.keys(SCOPES) as Scope[];

interface Draft extends ApplicationFields {
  problems: string[];
}

export const EMPTY: ApplicationFields = {
  name: '',
  redirect_uris: [],
  scopes: ['profile:me'],
  implicit_allowed: false,
  may_start_games: false,
};

/** The fields of the application form, and their problems. */
export function draftOf(form: Form): Draft {
  const name = (form.text('name') ?? '').trim();
  const redirect_uris = [...new Set((form.text('redirect_uris') ?? '').split(/\s+/).filter(Boolean))];
  const scopes = ALL_SCOPES.filter((scope) => form.ticked(`scope ${scope}`));
  const problems: string[] = [];
  if (name === '') problems.push('Give the application a name.');
  if ([...name].length > MAX_NAME) problems.push(`The name must be at most ${MAX_NAME} characters.`);
  if (redirect_uris.length === 0) problems.push('Give at least one redirect address.');
  if (redirect_uris.length > MAX_ADDRESSES)
    problems.push(`Give at most ${MAX_ADDRESSES} redirect addresses.`);
  for (const uri of redirect_uris.slice(0, MAX_ADDRESSES)) {
    const problem = problemOf(uri);
    if (problem) problems.push(`The redirect address ${uri.slice(0, 200)} ${problem}.`);
  }
  if (scopes.length === 0) problems.push('Choose at least one thing that it may ask for.');
  return {
    name,
    redirect_uris,
    scopes,
    implicit_allowed: form.ticked('implicit_allowed'),
    may_start_games: form.ticked('may_start_games'),
    problems,
  };
}
