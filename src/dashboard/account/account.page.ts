import type { ListedSession } from '../../auth/sign-in/sessions.service';
import type { OwnAccount, OwnAddress } from '../../users/own-account.service';
import { type Confirmation, confirmationField } from '../sign-in/confirmation-field';
import { AS_TYPED, changeForm, field, type Problems } from '../layout/fields';
import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import { alert, confirmation, day, done, muted, table, tag, timeElement } from '../layout/components';
import type { SignedInVisitor } from '../layout/visitor';
import { newPasswordField } from './link.page';
import { type Identities, identityList } from '../settings/identities.page';

export const ACCOUNT_PATH = '/user/settings/account';
export const ERASED_PATH = `${ACCOUNT_PATH}/erased`;

export interface AccountView {
  account: OwnAccount;
  sessions: ListedSession[];
  /** The identities at the store's identity provider, if it has one. */
  identities: Identities | undefined;
  store: string;
  /**
   * Whether people sign in here. Otherwise they sign in at the store, which has their names and passwords.
   */
  signsInHere: boolean;
  /** Whether people can sign in with a password, and not only with the provider. */
  hasPasswords: boolean;
  confirmation: Confirmation;
  mayErase: boolean;
  /** Whether the store sends links. */
  sendsLinks: boolean;
  draft?: {
    username?: string;
    display_name?: string;
    email?: string;
    problems: AccountProblems;
    status: number;
  };
  headers?: Record<string, string>;
  problem?: string;
}

type AccountProblems = Problems<'username' | 'display_name' | 'email' | 'new-password'>;

export function accountPage(visitor: SignedInVisitor, view: AccountView): Page {
  const { account, sessions, identities, signsInHere, hasPasswords, confirmation, mayErase, draft } = view;
  const { headers, problem } = view;
  const problems = draft?.problems ?? {};
  return {
    section: ACCOUNT_PATH,
    title: 'Account',
    status: draft?.status,
    headers,
    main: (notice) =>
      html`<h1>Account</h1>
        ${done(notice.message)} ${(problem ?? notice.problem) && alert((problem ?? notice.problem)!)}
        ${namesSection(visitor, view, problems)}
        <section class="stack" aria-labelledby="addresses">
          <h2 id="addresses">Email addresses</h2>
          ${
            account.addresses.length > 0 &&
            html`<ul class="plain card stack">
              ${account.addresses.map((address) => addressRow(visitor, address))}
            </ul>`
          }
          ${addAddress(visitor, view, problems.email)}
        </section>
        ${signsInHere && hasPasswords && passwordSection(visitor, account, confirmation, problems)}
        ${signsInHere && sessionsSection(visitor, sessions)}
        ${
          identities &&
          html`<section class="stack" aria-labelledby="providers">
            <h2 id="providers">Connected providers</h2>
            ${identityList(visitor, identities)}
          </section>`
        }
        <section class="card stack" aria-labelledby="data">
          <h2 id="data">Your data</h2>
          <p class="buttons">
            <a class="button quiet" href="/user/settings/data">Download your data</a>
            ${mayErase && html`<a class="button quiet danger" href="${ACCOUNT_PATH}/erase">Erase your account</a>`}
          </p>
        </section>`,
  };
}

const namesSection = (
  visitor: SignedInVisitor,
  { account, store, signsInHere, draft }: AccountView,
  problems: Problems,
): Html =>
  html`<section class="stack" aria-labelledby="names">
    <h2 id="names">Name</h2>
    ${
      signsInHere
        ? changeForm(
            visitor,
            { action: `${ACCOUNT_PATH}/names`, button: 'Save' },
            html`${field({ id: 'username', label: 'Username', value: draft?.username ?? account.username, ...AS_TYPED, autocomplete: 'username', maxlength: 63, problem: problems.username })}
            ${field({ id: 'display_name', label: html`Display name <small>optional</small>`, value: draft?.display_name ?? account.display_name ?? '', autocomplete: 'nickname', maxlength: 200, problem: problems.display_name })}`,
          )
        : html`<p>You sign in at ${store} as <strong>${account.username}</strong>.</p>`
    }
  </section>`;

/** A button that sends the email address in a form, because it must not be in a URL. */
const addressForm = (
  visitor: SignedInVisitor,
  action: string,
  email: string,
  words: string,
  style = 'quiet',
): Html =>
  html`<form method="post" action="${ACCOUNT_PATH}/addresses/${action}">
    ${formToken(visitor)} <input type="hidden" name="email" value="${email}" />
    <button class="${style}">${words}<span class="hidden"> ${email}</span></button>
  </form> `;

const addressRow = (visitor: SignedInVisitor, { email, verified, is_primary }: OwnAddress): Html =>
  html`<li class="head">
    <span class="address"
      >${email}
      ${is_primary ? tag('primary') : verified ? tag('verified') : tag('not verified', 'warning')}</span
    >
    <span class="buttons">
      ${verified && !is_primary && addressForm(visitor, 'primary', email, 'Make primary')}
      ${addressForm(visitor, 'remove', email, 'Remove', 'quiet danger')}
    </span>
  </li> `;

function addAddress(
  visitor: SignedInVisitor,
  { confirmation, draft, store, sendsLinks, signsInHere }: AccountView,
  problem?: string,
): Html {
  if (!sendsLinks) return html`<p class="muted">To add an email address, contact ${store}.</p>`;
  return changeForm(
    visitor,
    { action: `${ACCOUNT_PATH}/addresses`, button: 'Add email address' },
    html`${field({ id: 'email', label: 'New email address', type: 'email', value: draft?.email ?? '', ...AS_TYPED, autocomplete: 'email', maxlength: 320, problem })}
      ${signsInHere && confirmationField(confirmation, ACCOUNT_PATH)}
      <p class="muted">
        You get an email with a link that verifies it. To get another link, add the address again.
      </p>`,
  );
}

const passwordSection = (
  visitor: SignedInVisitor,
  { has_password }: OwnAccount,
  confirmation: Confirmation,
  problems: AccountProblems,
): Html =>
  html`<section class="stack" aria-labelledby="password-title">
    <h2 id="password-title">Password</h2>
    ${changeForm(
      visitor,
      { action: `${ACCOUNT_PATH}/password`, button: has_password ? 'Change password' : 'Set password' },
      html`${has_password ? field({ id: 'current-password', name: 'password', label: 'Current password', type: 'password', autocomplete: 'current-password', required: true, maxlength: 1000 }) : confirmationField(confirmation, ACCOUNT_PATH)}
        ${newPasswordField('New password', problems['new-password'])}
        <p class="muted">Signs you out everywhere else, and makes links to your account invalid.</p>`,
    )}
  </section>`;

const sessionsSection = (visitor: SignedInVisitor, sessions: ListedSession[]): Html =>
  html`<section class="stack" aria-labelledby="sessions">
    <h2 id="sessions">Sessions</h2>
    ${table(
      'Sessions, last used first',
      {
        Network: ({ network, is_current }: ListedSession) =>
          html`${network ?? muted('Unknown')} ${is_current && tag('this one')}`,
        'Signed in': ({ created_at }) => day(created_at),
        'Last used': ({ seen_at }) => timeElement(seen_at),
      },
      sessions,
    )}
    <form method="post" action="${ACCOUNT_PATH}/sessions/end">
      ${formToken(visitor)} <button class="quiet danger">Sign out everywhere</button>
    </form>
  </section>`;

/** Asks for confirmation, because games bought with the email address are removed from the library. */
export const removeAddressPage = (visitor: SignedInVisitor, email: string): Page =>
  confirmation(visitor, {
    section: ACCOUNT_PATH,
    title: 'Remove email address',
    question: `Remove ${email}?`,
    details: html`<p>
      Games that were bought with this address, and that you haven’t redeemed, leave your library. They come
      back if you add and verify the address again.
    </p>`,
    fields: html`<input type="hidden" name="email" value="${email}" /><input
        type="hidden"
        name="sure"
        value="yes"
      />`,
    action: `${ACCOUNT_PATH}/addresses/remove`,
    button: 'Remove email address',
    back: ACCOUNT_PATH,
  });

/** The first step of an erasure: users confirm who they are. */
export const erasePage = (
  visitor: SignedInVisitor,
  confirmation: Confirmation,
  problem?: string,
  response: Pick<Page, 'status' | 'headers'> = {},
): Page => ({
  section: ACCOUNT_PATH,
  title: 'Erase your account',
  single: true,
  ...response,
  main: html`<h1>Erase your account</h1>
    ${problem !== undefined && alert(problem)}
    <p>
      Your name, email addresses, picture, collections, API keys and apps are deleted, and your games get an
      anonymous owner. The games that you bought leave your library. Accounting records keep the amount, date
      and game of your purchases, but not your name.
    </p>
    ${changeForm(
      visitor,
      { action: `${ACCOUNT_PATH}/erase`, button: 'Continue', back: ACCOUNT_PATH },
      confirmationField(confirmation, `${ACCOUNT_PATH}/erase`),
    )}`,
});

/** The second step of an erasure. `until` is when the confirmation expires, and it is signed. */
export const eraseForGoodPage = (visitor: SignedInVisitor, until: string, signature: string): Page =>
  confirmation(visitor, {
    section: ACCOUNT_PATH,
    title: 'Erase your account',
    question: `Erase the account ${visitor.user.username}?`,
    details: html`<p>This can’t be undone.</p>`,
    fields: html`<input type="hidden" name="until" value="${until}" /><input
        type="hidden"
        name="signature"
        value="${signature}"
      />`,
    action: `${ACCOUNT_PATH}/erase`,
    button: 'Erase my account',
    back: ACCOUNT_PATH,
  });

export const erasedPage = (store: string): Page => ({
  title: 'Your account was erased',
  single: true,
  main: html`<h1>Your account was erased</h1>
    <p>${store} no longer stores your personal data.</p>`,
});
