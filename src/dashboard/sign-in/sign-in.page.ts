import type { Settings } from '../../platform/config/settings';
import type { DemoAccess } from '../layout/demo';
import { AS_TYPED, changeForm, field, passwordField } from '../layout/fields';
import { html, type Part } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { withQuery } from '../../platform/input/form';
import { alert, linkButton } from '../layout/components';
import { HOME } from '../layout/local-path';
import type { Visitor } from '../layout/visitor';

const SIGN_IN_PATH = '/login';
export const PROVIDER_PATH = '/login/provider';

export const signInPage = (
  visitor: Visitor,
  /** `reference` is its value in a URL. */
  { return_to, reference }: { return_to: string; reference: string },
  store: string,
  { name = '', problem, ...response }: { name?: string } & FormResult,
  demo: DemoAccess | undefined,
  provider: string | undefined,
  mayOpenAccounts: boolean,
): Page => {
  const back = { return_to: return_to === HOME ? undefined : reference };
  return {
    title: 'Sign in',
    section: SIGN_IN_PATH,
    ...response,
    single: true,
    main: html`<h1>Sign in</h1>
      ${problem && alert(problem)}
      ${provider !== undefined && html`<p>${linkButton(withQuery(PROVIDER_PATH, { return_to: reference }), `Sign in with ${provider}`)}</p>`}
      ${changeForm(
        visitor,
        { action: SIGN_IN_PATH, button: 'Sign in' },
        html`<input type="hidden" name="return_to" value="${return_to}" />
          ${field({ id: 'username', label: 'Username or email address', value: name, ...AS_TYPED, autocomplete: 'username', maxlength: 320, autofocus: name === '' })}
          ${passwordField('Password', name !== '')}`,
      )}
      ${demo?.password && html`<p>This is the demo store. Use the username and password that <code>npm start</code> printed.</p>`}
      <p class="muted">
        Use your ${store} account. <a href="${withQuery('/forgot-password', back)}">Forgot your password?</a>
        ${mayOpenAccounts && html`<a href="${withQuery('/sign-up', back)}">Sign up</a>`}
      </p>`,
  };
};

export const signInElsewherePage = ({ STORE_NAME, STORE_URL }: Settings): Page => ({
  title: 'Sign in',
  single: true,
  main: html`<h1>Sign in</h1>
    <p>Sign in at ${STORE_NAME}, and then return to this page.</p>
    <p><a class="button" href="${STORE_URL}">Go to ${STORE_NAME}</a></p>`,
});

/** `provider`: where the person is still signed in. */
export const signedOutPage = (provider?: { name: string; url: string }): Page => ({
  title: 'Signed out',
  single: true,
  main: html`<h1>Signed out</h1>
    <p>You are signed out here.</p>
    <p class="buttons">
      ${provider && linkButton(provider.url, `Sign out of ${provider.name} too`)}
      ${linkButton(SIGN_IN_PATH, 'Sign in', '', '')}
    </p>`,
});

/** The page after a failed sign-in with the provider. */
export const providerProblemPage = (problem: Part, reference: string): Page => ({
  title: 'Sign in',
  status: 403,
  single: true,
  main: html`<h1>Sign in</h1>
    <div class="alert" role="alert">${problem}</div>
    <p class="buttons">
      ${linkButton(withQuery(SIGN_IN_PATH, { return_to: reference }), 'Try again', '', '')}
    </p>`,
});

export const notSignedIn = ({ seconds }: { seconds?: number }, problem: string): FormResult =>
  seconds === undefined ? { status: 403, problem } : tooManyAttempts(seconds);

export const tooManyAttempts = (seconds: number): FormResult => ({
  status: 429,
  problem: `Too many attempts. Please wait ${seconds < 60 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`} and try again.`,
  headers: { 'Retry-After': String(seconds) },
});
