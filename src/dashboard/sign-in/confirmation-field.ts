import { withQuery } from '../../platform/input/form';
import { linkButton } from '../layout/components';
import { passwordField } from '../layout/fields';
import { html, type Html } from '../layout/html';
import { PROVIDER_PATH } from './sign-in.page';

/** How users confirm that they are who they are: a session alone may be stolen. */
export interface Confirmation {
  /** Otherwise, by a sign-in within the last five minutes. */
  byPassword: boolean;
  isFresh: boolean;
  /** The identity provider at which they can sign in again; undefined: without one. */
  provider: string | undefined;
}

/** How users confirm a change; of those whom no password signs in, a recent sign-in is required. */
export const confirmationField = (
  { byPassword, isFresh, provider }: Confirmation,
  return_to: string,
  autofocus = false,
): Html => {
  if (byPassword) return passwordField('Your password', autofocus);
  if (isFresh) return html``;
  const again = withQuery(PROVIDER_PATH, { again: 'yes', return_to });
  return html`<p>You must have signed in within the last five minutes.</p>
    <p>
      ${
        provider === undefined
          ? 'Sign out, and sign in again.'
          : linkButton(again, `Sign in again with ${provider}`)
      }
    </p>`;
};
