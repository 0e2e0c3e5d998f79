import { Controller, Get, Param, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access';
import { apiError } from '../../platform/http/api-error';
import { Audit } from '../../auth/audit';
import { TokenRevocations } from '../../auth/token-revocations.service';
import { GrantsService, type ListedGrant } from '../../auth/oauth/grants.service';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { html, type Html } from '../layout/html';
import { formToken, Layout, seeOther } from '../layout/layout';
import { Pages } from '../layout/page';
import { confirmation, day, done, idOf, permissionList } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';

const PATH = '/user/settings/authorized-apps';

/** The page of applications that may act for the user. */
@Pages()
@Controller('user/settings/authorized-apps')
export class GrantsController {
  constructor(
    private readonly grants: GrantsService,
    private readonly sessions: SessionsService,
    private readonly layout: Layout,
    private readonly tokens: TokenRevocations,
    private readonly audit: Audit,
  ) {}

  @Get()
  @SignedIn()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    const grants = await this.grants.grantsOf(visitor.user.id);
    const notice = await this.sessions.takeNotice(visitor.token);
    return this.layout.show(visitor, {
      section: PATH,
      title: 'Connected apps',
      main: html`<h1>Connected apps</h1>
        <p class="lead">Apps that can act for you. Revoke the access of apps that you no longer use.</p>
        ${done(notice.done)}
        ${grants.length === 0 ? html`<p class="empty">No app can act for you.</p>` : grants.map(card)}
        <h2>Games that you started</h2>
        <form method="post" action="${PATH}/game-tokens/revoke" class="card stack">
          ${formToken(visitor)}
          <p>
            A game that you start gets a token that identifies you for an hour. Revoke all tokens if another
            person may have one.
          </p>
          <div class="buttons"><button class="quiet danger">Revoke all game tokens</button></div>
        </form>`,
    });
  }

  @Post('game-tokens/revoke')
  @SignedIn()
  async revokeTokens(@CurrentVisitor() visitor: SignedInVisitor) {
    await this.tokens.revokeAllOf(visitor.user.id);
    this.audit.record({ event: 'jwt.revoked', ...visitor.by });
    await this.sessions.setNotice(visitor.token, {
      done: 'All tokens of games that you started were revoked.',
    });
    return seeOther(PATH);
  }

  @Get(':grant_id/revoke')
  @SignedIn()
  async confirm(@Param('grant_id') grant_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const grant = await this.grants.grantOf(visitor.user.id, idOf(grant_id));
    if (!grant) throw noSuchGrant();
    return this.layout.show(
      visitor,
      confirmation(visitor, {
        section: PATH,
        title: 'Revoke access',
        question: `Revoke access for ${grant.name}?`,
        facts: html`<p>It is signed out immediately, and must ask for your permission again.</p>`,
        action: `${PATH}/${grant.id}/revoke`,
        button: 'Revoke access',
        back: PATH,
      }),
    );
  }

  @Post(':grant_id/revoke')
  @SignedIn()
  async revoke(@Param('grant_id') grant_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const id = idOf(grant_id);
    const shown = await this.grants.grantOf(visitor.user.id, id);
    const grant = await this.grants.revoke(visitor.user.id, id);
    if (!shown || !grant) throw noSuchGrant();
    this.audit.record({ event: 'grant.revoked', ...visitor.by, client_id: grant.client_id });
    await this.sessions.setNotice(visitor.token, { done: `${shown.name} can no longer act for you.` });
    return seeOther(PATH);
  }
}

const noSuchGrant = () => apiError(404, 'This app doesn’t exist, or its access was already revoked.');

const card = ({ id, name, owner, created_at, last_used_at, ...permitted }: ListedGrant): Html =>
  html`<section class="card stack" aria-labelledby="grant-${id}">
    <div class="head">
      <h2 id="grant-${id}">${name} <span class="tag">by ${owner}</span></h2>
      <a class="button quiet danger" href="${PATH}/${id}/revoke"
        >Revoke<span class="hidden"> ${name}</span></a
      >
    </div>
    ${permissionList(permitted)}
    <dl class="facts">
      <dt>Since</dt>
      <dd>${day(created_at)}</dd>
      <dt>Last used</dt>
      <dd>${day(last_used_at)}</dd>
    </dl>
  </section>`;
