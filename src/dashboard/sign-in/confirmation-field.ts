import { withQuery } from '../../platform/input/form';
import { linkButton } from '../layout/components';
import { passwordField } from '../layout/fields';
import { html, type Html } from '../layout/html';
import { PROVIDER_PATH } from './sign-in.page';

/** How users confirm that they are who they are: a session alone may be stolen. */
export interface Confirmation {
  /** Whether users enter their password. Otherwise they must have signed in within the last five minutes. */
  byPassword: boolean;
  isFresh: boolean;
  /** The identity provider at which users can sign in again, if there is one. */
  provider: string | undefined;
}

/**
 * The field with which users confirm a change. Users who can't sign in with a password need a recent sign-in.
 */
export const confirmationField = (
  { byPassword, isFresh, provider }: Confirmation,
  return_to: string,
  { autofocus } = { autofocus: false },
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
