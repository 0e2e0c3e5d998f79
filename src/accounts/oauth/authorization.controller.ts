import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { Public, SignedIn } from '../../auth/access';
import { ApiKeysService } from '../../auth/api-keys.service';
import { Audit } from '../../auth/audit';
import { covers } from '../../auth/credential';
import { Database } from '../../database/database';
import { OwnAddress } from '../../http/own-address';
import { Post } from '../../http/routes';
import { type Asked, AuthorizationRequests, type Refusal, refusalOf } from './authorization-requests.service';
import { type Consent, type Grant, GrantsService } from './grants.service';
import { OauthCodesService } from './oauth-codes.service';
import { isClaimed, isLoopback, OUT_OF_BAND, placeOf, policySource, redirectWith } from './redirect-uris';
import { SessionsService, type SignedInUser } from '../sign-in/sessions.service';
import { formOf, queryOf } from '../web/form';
import { html, type Html } from '../web/html';
import { Layout, type PageAnswer, seeOther } from '../web/layout';
import { Pages } from '../web/page';
import { copyable, decision, permissionList } from '../web/parts';
import { SignInRequired } from '../web/sign-in-required';
import { CurrentVisitor, Visitor } from '../web/visitor';

/** The authorization endpoint: asks the user for consent, and redirects to the application. */
@Pages()
@Controller('user/oauth')
export class AuthorizationController {
  constructor(
    private readonly requests: AuthorizationRequests,
    private readonly grants: GrantsService,
    private readonly codes: OauthCodesService,
    private readonly keys: ApiKeysService,
    private readonly sessions: SessionsService,
    private readonly database: Database,
    private readonly layout: Layout,
    private readonly own: OwnAddress,
    private readonly audit: Audit,
  ) {}

  @Get()
  @Public()
  async ask(@Req() req: Request, @CurrentVisitor() visitor: Visitor): Promise<PageAnswer> {
    const asked = await this.requests.read(queryOf(req));
    // Only a signed-in user is redirected to an application, even with an error.
    if (!visitor.user) throw new SignInRequired(req.originalUrl);
    const refusal = refusalOf(asked);
    const grant = await this.grants.grantTo(visitor.user.id, asked.application.client_id);
    if (refusal) return this.refuse(visitor, asked, refusal, grant);
    if (grant && isRemembered(asked, grant)) return this.allow(req, visitor, asked, 'access given');
    return this.consent(visitor, visitor.user, asked, grant);
  }

  @Post()
  @Public()
  async decide(@Req() req: Request, @CurrentVisitor() visitor: Visitor): Promise<PageAnswer> {
    const form = await formOf(req);
    const asked = await this.requests.read(form);
    if (!visitor.user) throw new SignInRequired(pathOf(asked));
    const refusal = refusalOf(asked);
    if (refusal) {
      const grant = await this.grants.grantTo(visitor.user.id, asked.application.client_id);
      return this.refuse(visitor, asked, refusal, grant);
    }
    if (form.text('decision') !== 'allow')
      return asked.redirect_uri === OUT_OF_BAND
        ? seeOther('/user/settings/authorized-apps')
        : seeOther(
            this.withRefusal(asked, { error: 'access_denied', error_description: 'the user said no' }),
          );
    return this.allow(req, visitor, asked, 'grant given', {
      may_start_games: form.ticked('may_start_games'),
      implicit_allowed: asked.fields.response_type === 'token',
    });
  }

  /** Shows the token or code of an application without a redirect address, to be copied. */
  @Get('result')
  @SignedIn()
  async result(@CurrentVisitor() visitor: Visitor): Promise<PageAnswer> {
    const { application, kind, text } = await this.sessions.takeNotice(visitor.token);
    return this.layout.show(visitor, {
      title: 'Copy this',
      single: true,
      main: text
        ? html`<h1>Copy this into ${application}</h1>
            <div class="card stack">
              ${copyable('result', kind === 'token' ? 'Access token' : 'Code', text)}
              <p class="muted">
                ${kind === 'token' ? 'It is shown this once. Give it to nobody else.' : 'It is good for one minute, and for nobody else.'}
              </p>
            </div>`
        : html`<h1>There is nothing to show any more</h1>
            <p>What stood here was shown once. Start again in the application.</p>`,
    });
  }

  /** `consent` is what the user agreed to on the page, beside the scopes; absent: an earlier consent is used. */
  private async allow(
    req: Request,
    visitor: Visitor,
    { application, fields, scopes, redirect_uri }: Asked,
    event: 'grant given' | 'access given',
    consent: Omit<Consent, 'scopes'> = { may_start_games: false, implicit_allowed: false },
  ): Promise<PageAnswer> {
    const user_id = visitor.user!.id;
    const { client_id } = application;
    const kind = fields.response_type as 'token' | 'code';
    const { text, replaced } = await this.database.transaction(async (db) => {
      const grant = await this.grants.give(db, user_id, client_id, { scopes, ...consent });
      if (kind === 'token') return this.keys.replaceImplicit(db, grant, scopes);
      const { redirect_uri: named, code_challenge } = fields;
      const code = await this.codes.make(db, grant, { scopes, redirect_uri: named, code_challenge });
      return { text: code, replaced: [] };
    });
    this.keys.forget(replaced);
    this.audit.record({ event, request_id: req.id, user_id, client_id, scopes });
    if (redirect_uri === OUT_OF_BAND) {
      await this.sessions.leaveNotice(visitor.token, { application: application.name, kind, text });
      return seeOther('/user/oauth/result');
    }
    const iss = this.own.url;
    if (kind === 'code')
      return seeOther(redirectWith(redirect_uri, 'query', { code: text, state: fields.state, iss }));
    return seeOther(
      redirectWith(redirect_uri, 'fragment', {
        access_token: text,
        state: fields.state,
        token_type: 'bearer',
        scope: scopes.join(' '),
        iss,
      }),
    );
  }

  /** Redirects errors only to applications that the user has granted something: any other could be an open redirect. */
  private refuse(visitor: Visitor, asked: Asked, refusal: Refusal, grant: Grant | undefined): PageAnswer {
    const { application, redirect_uri } = asked;
    const back = redirect_uri === OUT_OF_BAND ? undefined : this.withRefusal(asked, refusal);
    if (grant && back !== undefined) return seeOther(back);
    return this.layout.show(visitor, {
      title: 'That request is not right',
      status: 400,
      single: true,
      main: html`<h1>That request is not right</h1>
        <p>
          <bdi>${application.name}</bdi> asked for something that it cannot have:
          ${refusal.error_description}.
        </p>
        <p>Please tell the makers of <bdi>${application.name}</bdi>: <code>${refusal.error}</code></p>
        ${
          back !== undefined &&
          html`<p>
            <a href="${back}">Back to <bdi>${application.name}</bdi></a>
          </p>`
        }`,
    });
  }

  private withRefusal({ redirect_uri, fields }: Asked, refusal: Refusal): string {
    const part = fields.response_type === 'token' ? 'fragment' : 'query';
    return redirectWith(redirect_uri, part, { ...refusal, state: fields.state, iss: this.own.url });
  }

  private consent(
    visitor: Visitor,
    user: SignedInUser,
    { application, redirect_uri, scopes, fields }: Asked,
    grant: Grant | undefined,
  ): PageAnswer {
    const source = policySource(redirect_uri);
    const { may_start_games } = application;
    return this.layout.show(visitor, {
      title: `Allow ${application.name}?`,
      single: true,
      formTargets: source ? [source] : [],
      main: html`<h1>Allow <bdi>${application.name}</bdi> to act for you?</h1>
        <div class="card stack">
          <p>
            <strong><bdi>${application.name}</bdi></strong
            >, an application by ${application.user!.username}, wants to act for you. It may:
          </p>
          ${permissionList({ scopes, may_start_games }, grant)}
          <p class="muted">
            ${afterwards(redirect_uri)}
            ${fields.response_type === 'token' ? 'It stays signed in until it does nothing for 90 days.' : 'It stays signed in for at most 180 days.'}
            You can take this back at any time under “Allowed applications”.
          </p>
          ${decision(visitor, '/user/oauth', { ...fields, ...(may_start_games && { may_start_games: 'yes' }) })}
        </div>
        <p class="muted">You are signed in as <strong>${user.username}</strong>.</p>`,
    });
  }
}

/** Whether an earlier consent covers the request. */
const isRemembered = ({ application, redirect_uri, scopes, fields }: Asked, grant: Grant): boolean =>
  isClaimed(redirect_uri) &&
  scopes.every((scope) => covers(grant.scopes, scope)) &&
  (grant.may_start_games || !application.may_start_games) &&
  (grant.implicit_allowed || fields.response_type !== 'token');

function afterwards(redirect_uri: string): Html {
  if (redirect_uri === OUT_OF_BAND) return html`Then you get a text to copy into the application.`;
  if (isLoopback(redirect_uri)) return html`Then you go back to the program on this computer.`;
  return html`Then you go to <strong>${placeOf(redirect_uri)}</strong>.`;
}

const pathOf = ({ fields }: Asked) =>
  `/user/oauth?${new URLSearchParams(fields as Record<string, string>).toString()}`;
