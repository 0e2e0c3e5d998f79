import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { Public, SignedIn } from '../../auth/access';
import { ApiKeysService } from '../../auth/api-keys.service';
import { covers } from '../../auth/scopes';
import { Database } from '../../database/database';
import { OwnAddress } from '../../http/own-address';
import { Post } from '../../http/post';
import { Audit } from '../../auth/audit';
import { type Asked, AuthorizationRequests, type Refusal, refusalOf } from './authorization-requests.service';
import { type Grant, GrantsService } from './grants.service';
import { OauthCodesService } from './oauth-codes.service';
import { isClaimed, isLoopback, OUT_OF_BAND, placeOf, policySource, redirectWith } from './redirect-uris';
import { SessionsService, type SignedInUser } from '../sign-in/sessions.service';
import { formOf, queryOf } from '../web/form';
import { html, type Html } from '../web/html';
import { Layout, type PageAnswer, seeOther } from '../web/layout';
import { Pages } from '../web/page';
import { copyable, decision, scopeList } from '../web/parts';
import { SignInRequired } from '../web/sign-in-required';
import { CurrentVisitor, Visitor } from '../web/visitor';

type Asking = Asked & { scopes: string[] };

interface Notice {
  application: string;
  kind: 'token' | 'code';
  text: string;
}

/** Where an application sends its user to be allowed something. */
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
    if ('problem' in asked.scopes) return this.wrongScopes(req, visitor, asked, asked.scopes.problem);
    // Nobody is sent on to an application, not even with an error, who has not come here on purpose.
    if (!visitor.user) throw new SignInRequired(req.originalUrl);
    const refusal = refusalOf(asked);
    if (refusal) return this.refuse(req, asked, refusal);
    const asking = asked as Asking;
    const grant = await this.grants.grantTo(visitor.user.id, asked.application.client_id);
    const remembered = grant && asking.scopes.every((scope) => covers(grant.scopes, scope));
    if (remembered && isClaimed(asked.redirect_uri)) return this.allow(req, visitor, asking, 'access given');
    return this.consent(visitor, visitor.user, asking, grant);
  }

  @Post()
  @Public()
  async decide(@Req() req: Request, @CurrentVisitor() visitor: Visitor): Promise<PageAnswer> {
    const form = await formOf(req);
    const asked = await this.requests.read(form);
    if ('problem' in asked.scopes) return this.wrongScopes(req, visitor, asked, asked.scopes.problem);
    if (!visitor.user) throw new SignInRequired(pathOf(asked));
    const refusal = refusalOf(asked);
    if (refusal) return this.refuse(req, asked, refusal);
    if (form.text('decision') !== 'allow')
      return this.refuse(req, asked, { error: 'access_denied', error_description: 'the user said no' });
    return this.allow(req, visitor, asked as Asking, 'grant given');
  }

  /** For applications without an address: what they got, to be copied. */
  @Get('result')
  @SignedIn()
  async result(@CurrentVisitor() visitor: Visitor): Promise<PageAnswer> {
    const { application, kind, text } = await this.sessions.takeNotice<Notice>(visitor.token);
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

  private async allow(
    req: Request,
    visitor: Visitor,
    asking: Asking,
    event: 'grant given' | 'access given',
  ): Promise<PageAnswer> {
    const { application, fields, scopes, redirect_uri } = asking;
    const user_id = visitor.user!.id;
    const { client_id } = application;
    const kind = fields.response_type as 'token' | 'code';
    const text = await this.database.transaction(async (db) => {
      const grant = await this.grants.give(db, user_id, client_id, scopes);
      if (kind === 'token') return (await this.keys.createUnder(db, grant, scopes, null)).key;
      const { redirect_uri: named, code_challenge } = fields;
      return this.codes.make(db, grant, { scopes, redirect_uri: named, code_challenge });
    });
    this.audit.record({ event, request_id: req.id, user_id, client_id, scopes });
    if (redirect_uri === OUT_OF_BAND) {
      await this.sessions.leaveNotice(visitor.token, {
        application: application.name,
        kind,
        text,
      } satisfies Notice);
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

  private refuse(req: Request, asked: Asked, refusal: Refusal): PageAnswer {
    return asked.redirect_uri === OUT_OF_BAND
      ? seeOther('/user/settings/authorized-apps')
      : seeOther(this.withRefusal(req, asked, refusal));
  }

  private withRefusal(req: Request, { redirect_uri, fields }: Asked, refusal: Refusal): string {
    const part = fields.response_type === 'token' ? 'fragment' : 'query';
    return redirectWith(redirect_uri, part, {
      ...refusal,
      state: fields.state,
      iss: this.own.url,
    });
  }

  private wrongScopes(req: Request, visitor: Visitor, asked: Asked, problem: string): PageAnswer {
    const back = this.withRefusal(req, asked, { error: 'invalid_scope', error_description: problem });
    return this.layout.show(visitor, {
      title: 'That request is not right',
      status: 400,
      single: true,
      main: html`<h1>That request is not right</h1>
        <p>${asked.application.name} asked for something that it cannot have. ${problem}</p>
        <p>Please tell the makers of ${asked.application.name}.</p>
        ${asked.redirect_uri !== OUT_OF_BAND && html`<p><a href="${back}">Back to ${asked.application.name}</a></p>`}`,
    });
  }

  private consent(
    visitor: Visitor,
    user: SignedInUser,
    asking: Asking,
    grant: Grant | undefined,
  ): PageAnswer {
    const { application, redirect_uri, scopes } = asking;
    const source = policySource(redirect_uri);
    return this.layout.show(visitor, {
      title: `Allow ${application.name}?`,
      single: true,
      formTargets: source ? [source] : [],
      main: html`<h1>Allow <bdi>${application.name}</bdi> to act for you?</h1>
        <div class="card stack">
          <p>
            <strong><bdi>${application.name}</bdi></strong
            >, an application by ${application.owner}, asks to:
          </p>
          ${scopeList(scopes, grant && ((scope) => (covers(grant.scopes, scope) ? undefined : 'new')))}
          <p class="muted">${afterwards(redirect_uri)} You can take this back at any time under “Access”.</p>
          ${decision(visitor, '/user/oauth', asking.fields)}
        </div>
        <p class="muted">You are signed in as <strong>${user.username}</strong>.</p>`,
    });
  }
}

function afterwards(redirect_uri: string): Html {
  if (redirect_uri === OUT_OF_BAND) return html`Then you get a text to copy into the application.`;
  if (isLoopback(redirect_uri)) return html`Then you go back to the program on this computer.`;
  return html`Then you go to <strong>${placeOf(redirect_uri)}</strong>.`;
}

const pathOf = ({ fields }: Asked) =>
  `/user/oauth?${new URLSearchParams(fields as Record<string, string>).toString()}`;
