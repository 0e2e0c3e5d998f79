import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import { copyable, permissionList } from '../layout/components';
import type { SignedInVisitor } from '../layout/visitor';
import type { AuthorizationRequest, OAuthError } from '../../auth/oauth/authorization-requests.service';
import { listFormTargets, isLoopbackUri, OUT_OF_BAND, describeTarget } from '../../auth/oauth/redirect-uris';
import type { Grant } from '../../auth/oauth/grants.service';
import type { Settings } from '../../platform/config/settings';
import type { OauthApplication } from '../../auth/accounts/oauth-application.entity';

export const CONSENT_PATH = '/user/oauth';

interface ConsentPrompt {
  application: OauthApplication;
  scopes: string[];
  grant?: Grant | null;
  question: Html;
  warning?: Html;
  /** What happens after the decision, and how long the consent lasts. */
  afterwards: Html;
  action: string;
  fields: Record<string, string>;
}

export const consentPage = (
  visitor: SignedInVisitor,
  { application, scopes, grant, ...prompt }: ConsentPrompt,
): Page => {
  const { name, user, may_start_games } = application;
  const fields = { ...prompt.fields, ...(may_start_games && { may_start_games: 'yes' }) };
  return {
    title: `Allow ${name}?`,
    single: true,
    main: html`<h1>${prompt.question}</h1>
      <div class="card stack">
        ${prompt.warning}
        <p>
          <strong><bdi>${name}</bdi></strong
          >, an app by ${user!.username}, wants to act on your behalf. If you allow it, the app can:
        </p>
        ${permissionList({ scopes, may_start_games }, grant)}
        <p class="muted">${prompt.afterwards} You can revoke this at any time under “Connected apps”.</p>
        <form method="post" action="${prompt.action}" class="buttons equal">
          ${formToken(visitor)}
          ${Object.entries(fields).map(([field, value]) => html`<input type="hidden" name="${field}" value="${value}" />`)}
          <button name="decision" value="allow">Allow</button>
          <button name="decision" value="deny" class="quiet">Cancel</button>
        </form>
      </div>
      <p class="muted">You are signed in as <strong>${visitor.user.username}</strong>.</p>`,
  };
};

export const appConsentPage = (
  visitor: SignedInVisitor,
  { application, redirect_uri, scopes, fields }: AuthorizationRequest,
  grant: Grant | null,
  { LENIENT_CLIENTS }: Settings,
): Page => {
  const page = consentPage(visitor, {
    application,
    scopes,
    grant,
    question: html`Allow <bdi>${application.name}</bdi> to act on your behalf?`,
    afterwards: html`${afterwards(redirect_uri)}
    ${staysSignedIn(fields.response_type === 'token' || LENIENT_CLIENTS)}`,
    action: CONSENT_PATH,
    fields,
  });
  return { ...page, formTargets: listFormTargets(redirect_uri) };
};

/** Whether the app gets a key without a fixed expiry. */
export const staysSignedIn = (isLasting: boolean): string =>
  `The app stays signed in ${isLasting ? 'until you haven’t used it for 90 days' : 'for at most 180 days'}.`;

function afterwards(redirect_uri: string): Html {
  if (redirect_uri === OUT_OF_BAND) return html`You’ll get a code to copy into the app.`;
  if (isLoopbackUri(redirect_uri)) return html`You’ll be returned to the app on this computer.`;
  return html`You are then redirected to <strong>${describeTarget(redirect_uri)}</strong>.`;
}

/** The token or code of an app without a redirect URI, to be copied. */
export const RESULT_PAGE: Page = {
  title: 'Copy to the app',
  single: true,
  main: ({ application, kind, text }) =>
    text
      ? html`<h1>Copy the ${kind} to ${application}</h1>
          <div class="card stack">
            ${copyable('result', kind === 'token' ? 'Access token' : 'Code', text)}
            <p class="muted">
              ${kind === 'token' ? 'It is shown only once. Don’t share it.' : 'It is valid for one minute. Don’t share it.'}
            </p>
          </div>`
      : html`<h1>This page has expired</h1>
          <p>The code was shown only once. Start again in the app.</p>`,
};

/** A request of an app that can't be allowed; `back`: its URL for errors. */
export const errorPage = (name: string, error: OAuthError, back: string | undefined): Page => ({
  title: 'Invalid request',
  status: 400,
  single: true,
  main: html`<h1>Invalid request</h1>
    <p><bdi>${name}</bdi> sent a request that isn’t allowed: ${error.error_description}.</p>
    <p>
      Please report this to the developers of <bdi>${name}</bdi>:
      <code>${error.error}</code>
    </p>
    ${
      back !== undefined &&
      html`<p>
        <a href="${back}">Back to <bdi>${name}</bdi></a>
      </p>`
    }`,
});
