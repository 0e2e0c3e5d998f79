import type { ListedIdentity } from '../../auth/identities/identities.service';
import { type Confirmation, confirmationField } from '../sign-in/confirmation-field';
import { changeForm } from '../layout/fields';
import { html, type Html } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { alert, type Columns, actions, day, done, linkButton, tableOr } from '../layout/components';
import { formToken } from '../layout/layout';
import type { Visitor } from '../layout/visitor';
import { IDENTITIES_PATH } from '../layout/local-path';
import type { PendingAccount } from '../sign-in/provider-sign-in';

/** The user's accounts at the provider, for any page of the account. */
export interface Identities {
  provider: string;
  issuers: string[];
  identities: ListedIdentity[];
  hasPassword: boolean;
}

/** Whether the user could no longer sign in without the identity. */
const isLastWayIn = ({ identities, hasPassword, issuers }: Identities, { id }: ListedIdentity): boolean =>
  !hasPassword && !identities.some((other) => other.id !== id && issuers.includes(other.issuer));

/** The list of connected accounts, with its buttons. */
export function identityList(visitor: Visitor, all: Identities): Html {
  const columns: Columns<ListedIdentity> = {
    Account: ({ label }) => label ?? all.provider,
    Provider: ({ issuer }) => (all.issuers.includes(issuer) ? all.provider : issuer),
    Connected: ({ created_at }) => day(created_at),
    'Last sign-in': ({ used_at }) => day(used_at),
    Actions: actions((identity) =>
      isLastWayIn(all, identity)
        ? html`<small>Your only way to sign in</small>`
        : html`<form method="post" action="${IDENTITIES_PATH}/${identity.id}/disconnect">
            ${formToken(visitor)}
            <button class="quiet">Disconnect<span class="hidden"> ${identity.label}</span></button>
          </form>`,
    ),
  };
  return html`${tableOr('No account is connected.', 'Connected providers', columns, all.identities)}
    <p>${linkButton(`${IDENTITIES_PATH}/connect`, `Connect ${all.provider}`)}</p>`;
}

const connectForm = (
  visitor: Visitor,
  { provider }: Identities,
  pending: PendingAccount,
  confirmation: Confirmation,
): Html =>
  html`<section class="card stack" aria-labelledby="confirm">
    <h2 id="confirm">Connect this account?</h2>
    <p>
      You signed in at ${provider} as
      <strong>${pending.username ?? pending.verified_email ?? pending.subject}</strong>. Once it is connected,
      anyone who can sign in to that account can sign in as <strong>${visitor.user?.username}</strong>.
    </p>
    ${changeForm(
      visitor,
      { action: IDENTITIES_PATH, button: 'Connect', back: `${IDENTITIES_PATH}/cancel` },
      confirmationField(confirmation, IDENTITIES_PATH, { autofocus: true }),
      'stack',
    )}
  </section>`;

export const identitiesPage = (
  visitor: Visitor,
  all: Identities,
  confirmation: Confirmation,
  { pending, problem, ...response }: { pending?: PendingAccount } & FormResult = {},
): Page => ({
  section: IDENTITIES_PATH,
  title: 'Connected providers',
  ...response,
  main: (notice) =>
    html`<h1>Connected providers</h1>
      <p class="lead">Sign in with an account that you have at ${all.provider}.</p>
      ${done(notice.message)} ${notice.problem && alert(notice.problem)} ${problem && alert(problem)}
      ${pending && connectForm(visitor, all, pending, confirmation)} ${identityList(visitor, all)}`,
});
