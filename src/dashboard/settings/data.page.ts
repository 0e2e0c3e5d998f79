import type { Settings } from '../../platform/config/settings';
import { type Confirmation, confirmationField } from '../sign-in/confirmation-field';
import { changeForm } from '../layout/fields';
import { html } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { alert } from '../layout/components';
import type { Visitor } from '../layout/visitor';

const DATA_PATH = '/user/settings/data';

export function dataPage(
  visitor: Visitor,
  settings: Settings,
  confirmation: Confirmation,
  { problem, ...response }: FormResult,
): Page {
  const store = settings.STORE_NAME;
  return {
    section: DATA_PATH,
    title: 'Your data',
    ...response,
    main: html`<h1>Your data</h1>
      <p class="lead">
        The personal data that ${store} stores about you. You can download it, or have it erased.
      </p>
      ${problem && alert(problem)}
      <section class="card stack" aria-labelledby="export">
        <h2 id="export">Download your data</h2>
        <p>
          One file with your account and its email addresses, purchases, download keys, collections, API keys,
          apps, sign-ins and audit events. Each line is a JSON object.
        </p>
        ${settings.TRUSTED_IDENTITY_HEADER ? html`<p>You sign in at ${store}. Request the file there.</p>` : changeForm(visitor, { action: DATA_PATH, button: 'Download my data' }, confirmationField(confirmation, DATA_PATH), 'stack')}
      </section>
      <section class="card stack" aria-labelledby="erasure">
        <h2 id="erasure">Have your data erased</h2>
        <p>
          ${!(settings.SELF_ERASURE && !settings.TRUSTED_IDENTITY_HEADER) && `Contact ${store}. `}Your name,
          email addresses, picture, collections, API keys and apps are deleted, and your games get an
          anonymous owner. The store’s accounting records keep the amount, date and game of your purchases,
          but not your name.
        </p>
        <p>
          This can’t be undone: you can no longer sign in, and your purchases can no longer be found by your
          name or email address.
        </p>
        <p>
          ${
            settings.SELF_ERASURE && !settings.TRUSTED_IDENTITY_HEADER
              ? html`<a class="button quiet danger" href="/user/settings/account/erase"
                  >Erase your account</a
                >`
              : html`<a class="button quiet" href="${settings.STORE_URL}">Go to ${store}</a>`
          }
        </p>
      </section>`,
  };
}
