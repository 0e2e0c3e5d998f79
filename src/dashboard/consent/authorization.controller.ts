import { Controller, Get, Req, Post } from '@nestjs/common';
import type { Request } from 'express';
import { Public, SignedIn } from '../../auth/access/access';
import { Audit } from '../../audit/audit';
import { covers } from '../../auth/access/credential';
import { Settings } from '../../platform/config/settings';
import { ServiceUrl } from '../../platform/server/service-url';
import {
  type AuthorizationRequest,
  AuthorizationRequests,
  type AuthorizationResult,
  type OAuthError,
  findOAuthError,
} from '../../auth/oauth/authorization-requests.service';
import { appConsentPage, errorPage, CONSENT_PATH, RESULT_PAGE } from './consent.page';
import { type Grant, GrantsService } from '../../auth/oauth/grants.service';
import { isExclusive, OUT_OF_BAND, redirectWith } from '../../auth/oauth/redirect-uris';
import { Form, withQuery } from '../../platform/input/form';
import { seeOther } from '../layout/layout';
import { FormFields, PageQuery, Pages } from '../layout/page';
import { SignInRequired } from '../layout/page.guard';
import { CurrentVisitor, isSignedIn, type SignedInVisitor, Visitor } from '../layout/visitor';

/** The authorization endpoint: asks the user for consent, and redirects to the app. */
@Pages()
@Controller('user/oauth')
export class AuthorizationController {
  constructor(
    private readonly requests: AuthorizationRequests,
    private readonly grants: GrantsService,
    private readonly service: ServiceUrl,
    private readonly audit: Audit,
    private readonly settings: Settings,
  ) {}

  @Get()
  @Public()
  async showConsent(@Req() req: Request, @PageQuery() query: Form, @CurrentVisitor() visitor: Visitor) {
    const request = await this.requests.read(query);
    // Only a signed-in user is redirected to an app, even with an error.
    if (!isSignedIn(visitor)) throw new SignInRequired(req.originalUrl);
    const error = findOAuthError(request);
    const grant = await this.grants.grantTo(visitor.user.id, request.application.client_id);
    if (error) return this.errorPage(request, error, grant);
    if (!grant || !isAlreadyAllowed(request, grant))
      return appConsentPage(visitor, request, grant, this.settings);
    const result = await this.requests.reuse(request, grant);
    if (!result) return appConsentPage(visitor, request, null, this.settings);
    // An app can cause any number of these events.
    this.audit.note(auditEntry('grant.reused', visitor, request));
    return this.send(request, result);
  }

  @Post()
  @Public()
  async decide(@FormFields() form: Form, @CurrentVisitor() visitor: Visitor) {
    const request = await this.requests.read(form);
    if (!isSignedIn(visitor)) throw new SignInRequired(withQuery(CONSENT_PATH, request.fields));
    const error = findOAuthError(request);
    if (error) {
      const grant = await this.grants.grantTo(visitor.user.id, request.application.client_id);
      return this.errorPage(request, error, grant);
    }
    if (form.text('decision') !== 'allow')
      return request.redirect_uri === OUT_OF_BAND
        ? seeOther('/user/settings/authorized-apps')
        : seeOther(
            this.withError(request, { error: 'access_denied', error_description: 'the user denied access' }),
          );
    const result = await this.requests.allow(visitor.user.id, request, {
      may_start_games: form.isChecked('may_start_games'),
      implicit_allowed: request.fields.response_type === 'token',
    });
    this.audit.record(auditEntry('grant.created', visitor, request));
    return this.send(request, result);
  }

  /** Shows the token or code of an app without a redirect URI, to be copied. */
  @Get('result')
  @SignedIn()
  result() {
    return RESULT_PAGE;
  }

  private send(
    { application, fields, scopes, redirect_uri }: AuthorizationRequest,
    { kind, text }: AuthorizationResult,
  ) {
    if (redirect_uri === OUT_OF_BAND)
      return seeOther(`${CONSENT_PATH}/result`, { application: application.name, kind, text });
    const iss = this.service.url;
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

  /** Redirects errors only to apps that the user has granted something: any other could be an open redirect. */
  private errorPage(request: AuthorizationRequest, error: OAuthError, grant: Grant | null) {
    const { application, redirect_uri } = request;
    const back = redirect_uri === OUT_OF_BAND ? undefined : this.withError(request, error);
    if (grant && back !== undefined) return seeOther(back);
    return errorPage(application.name, error, back);
  }

  private withError({ redirect_uri, fields }: AuthorizationRequest, error: OAuthError): string {
    const part = fields.response_type === 'token' ? 'fragment' : 'query';
    return redirectWith(redirect_uri, part, { ...error, state: fields.state, iss: this.service.url });
  }
}

const auditEntry = (
  event: 'grant.created' | 'grant.reused',
  { by }: SignedInVisitor,
  { application: { client_id }, scopes }: AuthorizationRequest,
) => ({ event, ...by, client_id, scopes });

/** Whether an earlier consent includes the request. */
const isAlreadyAllowed = (
  { application, redirect_uri, scopes, fields }: AuthorizationRequest,
  grant: Grant,
): boolean =>
  isExclusive(redirect_uri) &&
  scopes.every((scope) => covers(grant.scopes, scope)) &&
  (grant.may_start_games || !application.may_start_games) &&
  (grant.implicit_allowed || fields.response_type !== 'token');
