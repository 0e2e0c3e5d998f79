import { AS_TYPED, changeForm, field, MAX_PASSWORD, type Problems } from '../layout/fields';
import { html } from '../layout/html';
import type { Page } from '../layout/layout';
import { alert } from '../layout/components';
import type { Visitor } from '../layout/visitor';

export const SETUP_PATH = '/setup';

interface SetupForm {
  code: string;
  username: string;
  email: string;
}

export const setupPage = (
  visitor: Visitor,
  store: string,
  form: SetupForm = { code: '', username: '', email: '' },
  problems: Problems = {},
  { problem, ...response }: { problem?: string } & Pick<Page, 'status' | 'headers'> = {},
): Page => ({
  title: 'Set up the store',
  single: true,
  ...response,
  main: html`<h1>Set up ${store}</h1>
    <p class="lead">Create the first account. It can sell games.</p>
    ${problem && alert(problem)}
    ${changeForm(
      visitor,
      { action: SETUP_PATH, button: 'Create account' },
      html`${field({ id: 'code', label: 'Setup code, from the log of the service', value: form.code, problem: problems.code, ...AS_TYPED, maxlength: 40, autofocus: true })}
      ${field({ id: 'username', label: 'Username', value: form.username, problem: problems.username, ...AS_TYPED, autocomplete: 'username', maxlength: 63 })}
      ${field({ id: 'email', label: 'Email address', value: form.email, problem: problems.email, ...AS_TYPED, type: 'email', autocomplete: 'email', maxlength: 254 })}
      ${field({ id: 'password', label: 'Password, at least 8 characters', type: 'password', problem: problems.password, autocomplete: 'new-password', required: true, maxlength: MAX_PASSWORD })}`,
    )}`,
});
