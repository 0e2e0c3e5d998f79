import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import { permissionList } from '../layout/parts';
import type { SignedInVisitor } from '../layout/visitor';
import type { Grant } from '../../auth/oauth/grants.service';

interface Asking {
  name: string;
  /** The username of the application's owner. */
  owner: string;
  scopes: string[];
  may_start_games: boolean;
  /** What the user granted before. */
  grant?: Grant;
  question: Html;
  warning?: Html;
  /** What happens after the decision, and how long the consent lasts. */
  afterwards: Html;
  action: string;
  /** Sent with the decision. */
  fields: Record<string, string>;
}

/** The page on which a user allows an app to act for them, or denies it. */
export const consentPage = (visitor: SignedInVisitor, { name, owner, grant, ...asking }: Asking): Page => {
  const fields = { ...asking.fields, ...(asking.may_start_games && { may_start_games: 'yes' }) };
  return {
    title: `Allow ${name}?`,
    single: true,
    main: html`<h1>${asking.question}</h1>
      <div class="card stack">
        ${asking.warning}
        <p>
          <strong><bdi>${name}</bdi></strong
          >, an app by ${owner}, wants to act for you. It can:
        </p>
        ${permissionList(asking, grant)}
        <p class="muted">${asking.afterwards} You can revoke this at any time under “Connected apps”.</p>
        <form method="post" action="${asking.action}" class="buttons equal">
          ${formToken(visitor)}
          ${Object.entries(fields).map(([field, value]) => html`<input type="hidden" name="${field}" value="${value}" />`)}
          <button name="decision" value="allow">Allow</button>
          <button name="decision" value="deny" class="quiet">Cancel</button>
        </form>
      </div>
      <p class="muted">You are signed in as <strong>${visitor.user.username}</strong>.</p>`,
  };
};
