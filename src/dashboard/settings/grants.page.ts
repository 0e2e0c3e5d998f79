import type { ListedGrant } from '../../auth/oauth/grants.service';
import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import {
  confirmation,
  day,
  done,
  descriptionList,
  linkButton,
  permissionList,
  tag,
} from '../layout/components';
import type { Visitor } from '../layout/visitor';

export const GRANTS_PATH = '/user/settings/authorized-apps';

export const grantsPage = (visitor: Visitor, grants: ListedGrant[]): Page => ({
  section: GRANTS_PATH,
  title: 'Connected apps',
  main: (notice) =>
    html`<h1>Connected apps</h1>
      <p class="lead">Apps that can act on your behalf. Revoke access for apps that you no longer use.</p>
      ${done(notice.message)}
      ${grants.length === 0 ? html`<p class="empty">You haven’t connected any apps.</p>` : grants.map(card)}
      <h2>Games that you started</h2>
      <form method="post" action="${GRANTS_PATH}/game-tokens/revoke" class="card stack">
        ${formToken(visitor)}
        <p>
          When you start a game, it receives a token that identifies you until the token expires. If someone
          else might have one of these tokens, revoke them all.
        </p>
        <div class="buttons"><button class="quiet danger">Revoke all game tokens</button></div>
      </form>`,
});

const card = ({ id, name, owner, created_at, last_used_at, ...permitted }: ListedGrant): Html =>
  html`<section class="card stack" aria-labelledby="grant-${id}">
    <div class="head">
      <h2 id="grant-${id}">${name} ${tag(`By ${owner}`)}</h2>
      ${linkButton(`${GRANTS_PATH}/${id}/revoke`, 'Revoke', name, 'quiet danger')}
    </div>
    ${permissionList(permitted)}
    ${descriptionList({ Since: day(created_at), 'Last used': day(last_used_at) })}
  </section>`;

export const revokeGrantPage = (visitor: Visitor, { id, name }: { id: number; name: string }): Page =>
  confirmation(visitor, {
    section: GRANTS_PATH,
    title: 'Revoke access',
    question: `Revoke access for ${name}?`,
    details: html`<p>
      The app is signed out immediately. To act on your behalf again, it needs your permission.
    </p>`,
    action: `${GRANTS_PATH}/${id}/revoke`,
    button: 'Revoke access',
    back: GRANTS_PATH,
  });
