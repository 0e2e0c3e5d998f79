import type { Settings } from '../../platform/config/settings';
import { html } from '../layout/html';
import type { Page } from '../layout/layout';

type Store = Pick<Settings, 'STORE_NAME' | 'STORE_URL'>;

/** The page after a request for a link. */
export const sentPage = (title: string, text: string, { STORE_NAME, STORE_URL }: Store): Page => ({
  title,
  single: true,
  main: html`<h1>${title}</h1>
    <p>${text}</p>
    <p class="muted">
      The link works once, for 24 hours. If nothing arrives within a few minutes, look in your spam folder, or
      contact
      <a href="${STORE_URL}">${STORE_NAME}</a>.
    </p>`,
});

/** The page of a store without a mailer. */
export const contactPage = (title: string, purpose: string, { STORE_NAME, STORE_URL }: Store): Page => ({
  title,
  single: true,
  main: html`<h1>${title}</h1>
    <p>Contact ${STORE_NAME} ${purpose}.</p>
    <p><a class="button" href="${STORE_URL}">Go to ${STORE_NAME}</a></p>`,
});
