import type { FoundLink } from '../../users/links/links.service';
import { changeForm, field, MAX_PASSWORD } from '../layout/fields';
import { html, type Html } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { alert } from '../layout/components';
import type { Visitor } from '../layout/visitor';

/** `needsPassword`: the person who signed up used another browser, so that the password may not be theirs. */
interface Shown {
  link: FoundLink;
  path: string;
  visitor: Visitor;
  store: string;
  needsPassword: boolean;
  result?: FormResult;
}

export const newPasswordField = (label: string, problem?: string): Html =>
  html`${field({ id: 'new-password', name: 'new_password', label, type: 'password', autocomplete: 'new-password', required: true, minlength: 8, maxlength: MAX_PASSWORD, problem })}
    <button type="button" class="quiet show-password" data-show="new-password" aria-pressed="false" hidden>
      Show password
    </button>`;

const TITLES: Record<FoundLink['purpose'], string> = {
  set_password: 'Set a new password',
  sign_in: 'Sign in',
  sign_up: 'Create your account',
  verify_email: 'Verify your email address',
};

/** A page with one button. Opening it changes nothing: mail programs preview links. */
export function linkPage({ link, path, visitor, store, needsPassword, result = {} }: Shown): Page {
  const { problem, ...response } = result;
  const title = TITLES[link.purpose];
  const name = link.account ?? link.username;
  const form = (button: string, text: Html, fields?: Html) =>
    html`${text} ${changeForm(visitor, { action: path, button }, fields)}`;
  const contents: Record<FoundLink['purpose'], () => Html> = {
    set_password: () =>
      form(
        'Set password',
        html`<p>
          For the account <strong>${name}</strong> at ${store}. Other sessions of the account are signed out.
        </p>`,
        newPasswordField('New password'),
      ),
    sign_in: () => form('Sign in', html`<p>As <strong>${name}</strong> at ${store}, in this browser.</p>`),
    sign_up: () =>
      form(
        'Create account',
        html`<p>
          The account <strong>${name}</strong> at ${store}, with the email address
          <strong>${link.email}</strong>. If you didn’t sign up, close this page.
        </p>`,
        needsPassword ? newPasswordField('Password of your new account') : undefined,
      ),
    verify_email: () =>
      form(
        'Verify email address',
        html`<p>
          <strong>${link.email}</strong> becomes an email address of the account <strong>${name}</strong>,
          which gets what was bought with it.
        </p>`,
      ),
  };
  return {
    title,
    ...response,
    single: true,
    main: html`<h1>${title}</h1>
      ${problem && alert(problem)} ${contents[link.purpose]()}`,
  };
}

/** An email address is verified only in a session of its account, because someone else may open the link. */
export const signInToVerifyPage = (
  { account, email }: FoundLink,
  sign_in: string,
  { user }: Visitor,
): Page => ({
  title: TITLES.verify_email,
  single: true,
  main: html`<h1>${TITLES.verify_email}</h1>
    <p>
      Sign in as <strong>${account}</strong> in this browser to verify <strong>${email}</strong>. If this
      isn’t your account, close this page: a visitor entered your email address.
    </p>
    ${
      user === undefined
        ? html`<p><a class="button" href="${sign_in}">Sign in</a></p>`
        : html`<p>
            You are signed in as <strong>${user.username}</strong>. Sign out first, and then open this link
            again.
          </p>`
    }`,
});
