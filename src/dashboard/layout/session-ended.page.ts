import { html, type Html } from './html';
import { formToken, type Page } from './layout';
import { descriptionList, inWords } from './components';
import type { Visitor } from './visitor';

/** A form of a signed-in person that arrived without their session, or in another one. */
export interface LateForm {
  /** The path that it was sent to. */
  action: string;
  /** The page that it is on. */
  page: string;
  /** Of the session in which the page was shown. */
  token: string;
  /** Without passwords. */
  fields: [name: string, value: string][];
}

const SHOWN = 500;

/**
 * Nothing is repeated without a click: first the person signs in, in another tab, because this page keeps what they
 * entered; then they see what would be sent, and send it.
 */
export const sessionEndedPage = (visitor: Visitor | undefined, form: LateForm): Page =>
  visitor?.user ? sendAgainPage(visitor, visitor.user.username, form) : signInFirstPage(form);

function signInFirstPage({ action, page, token, fields }: LateForm): Page {
  const signIn = `/login?return_to=${encodeURIComponent(page)}`;
  return {
    title: 'Your session has ended',
    status: 403,
    single: true,
    main: html`<h1>Your session has ended</h1>
      ${
        fields.length === 0
          ? html`<p>Nothing was changed. Sign in again, and then repeat the last step.</p>
              <p class="buttons"><a class="button" href="${signIn}">Sign in</a></p>`
          : html`<p>Nothing was changed. This page keeps what you entered, except passwords:</p>
              ${entries(fields)}
              <ol>
                <li><a href="${signIn}" target="_blank" rel="noopener">Sign in in a new tab</a></li>
                <li>Come back to this tab, and continue.</li>
              </ol>
              <form method="post" action="${action}">
                ${hidden([['form_token', token], ...fields])}
                <div class="buttons"><button>Continue</button></div>
              </form>`
      }`,
  };
}

const sendAgainPage = (visitor: Visitor, username: string, { action, page, fields }: LateForm): Page => ({
  title: 'Send this form?',
  status: 403,
  single: true,
  main: html`<h1>Send this form?</h1>
    <p>
      You filled it in before you signed in as ${username}. It wasn’t sent yet, so nothing was changed.
      Passwords aren’t kept.
    </p>
    ${entries(fields)}
    <form method="post" action="${action}">
      ${formToken(visitor)} ${hidden(fields)}
      <div class="buttons">
        <button>Send the form</button>
        <a class="button quiet" href="${page}">Discard it</a>
      </div>
    </form>`,
});

const entries = (fields: LateForm['fields']): Html =>
  descriptionList(
    Object.fromEntries(
      fields
        .filter(([, value]) => value !== '')
        .map(([name, value]) => [inWords(name), value.length > SHOWN ? `${value.slice(0, SHOWN)}…` : value]),
    ),
  );

const hidden = (fields: LateForm['fields']): Html =>
  html`${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`;
