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
  /** The token of the session in which the page was shown. */
  token: string;
  /** All fields except passwords. */
  fields: [name: string, value: string][];
}

const MAX_SHOWN_CHARACTERS = 500;
const ENDED = { title: 'Your session has ended', status: 403, single: true };

/**
 * Nothing is repeated without a click: first the person signs in, in another tab, because this page keeps what they
 * entered; then they see what would be sent, and send it. A form without entries, such as a button that deletes
 * something, doesn't show what it would do, so it isn't sent again: the person opens its page.
 */
export function sessionEndedPage(visitor: Visitor | undefined, form: LateForm, signInPath: string): Page {
  const isEmpty = form.fields.every(([, value]) => value === '');
  if (visitor?.user)
    return isEmpty ? openAgainPage(form) : sendAgainPage(visitor, visitor.user.username, form);
  return isEmpty ? signInPage(signInPath) : signInFirstPage(form, signInPath);
}

const openAgainPage = ({ page }: LateForm): Page => ({
  ...ENDED,
  main: html`<h1>${ENDED.title}</h1>
    <p>
      Nothing was changed. You have signed in since you opened the page: open it again, and repeat the last
      step.
    </p>
    <p class="buttons"><a class="button" href="${page}">Open the page</a></p>`,
});

const signInPage = (signInPath: string): Page => ({
  ...ENDED,
  main: html`<h1>${ENDED.title}</h1>
    <p>Nothing was changed. Sign in again, and then repeat the last step.</p>
    <p class="buttons"><a class="button" href="${signInPath}">Sign in</a></p>`,
});

const signInFirstPage = (form: LateForm, signInPath: string): Page => ({
  ...ENDED,
  main: html`<h1>${ENDED.title}</h1>
    <p>Nothing was changed. This page keeps what you entered, except passwords:</p>
    ${entries(form.fields)}
    <ol>
      <li><a href="${signInPath}" target="_blank" rel="noopener">Sign in in a new tab</a></li>
      <li>Come back to this tab, and continue.</li>
    </ol>
    <form method="post" action="${form.action}">
      ${hidden([['form_token', form.token], ...form.fields])}
      <div class="buttons"><button>Continue</button></div>
    </form>`,
});

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
        .map(([name, value]) => [
          inWords(name),
          value.length > MAX_SHOWN_CHARACTERS ? `${value.slice(0, MAX_SHOWN_CHARACTERS)}…` : value,
        ]),
    ),
  );

const hidden = (fields: LateForm['fields']): Html =>
  html`${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`;
