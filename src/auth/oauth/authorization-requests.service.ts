import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Settings } from '../../platform/config/settings';
import { ApiError, apiError } from '../../platform/errors/api-error';
import { parseFields } from '../../platform/input/body';
import { Database } from '../../platform/database/database';
import { ApiKeysService } from '../keys/api-keys.service';
import { ApplicationsService } from './applications.service';
import { type Consent, type Grant, GrantsService } from './grants.service';
import { OauthCodesService } from './oauth-codes.service';
import type { OauthApplication } from '../accounts/oauth-application.entity';
import { listOfScopes, problemOfScopes } from './oauth-scopes';
import { isSafe, isSameRedirect, listFormTargets } from './redirect-uris';
import { Form } from '../../platform/input/form';

const FIELDS = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
] as const;
/** A code challenge with method S256 (RFC 7636). */
export const CHALLENGE = /^[\w-]{43}$/;
const MAX_STATE_CHARACTERS = 4000;

/** A request for consent, with a redirect URI that the app registered. */
export interface AuthorizationRequest {
  application: OauthApplication;
  redirect_uri: string;
  /** The parameters of the request, which the consent form repeats. */
  fields: Partial<Record<(typeof FIELDS)[number], string>>;
  scopes: string[];
}

/** The token or code for an app. */
export interface AuthorizationResult {
  kind: 'token' | 'code';
  text: string;
}

/** An error that is redirected to the app. */
export interface OAuthError {
  error: string;
  error_description: string;
}

@Injectable()
export class AuthorizationRequests {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly grants: GrantsService,
    private readonly codes: OauthCodesService,
    private readonly keys: ApiKeysService,
    private readonly database: Database,
    private readonly settings: Settings,
  ) {}

  /**
   * Throws errors that are shown to the user, not redirected to the app, because the redirect URI is not
   * verified yet.
   */
  async read(form: Form): Promise<AuthorizationRequest> {
    const fields: AuthorizationRequest['fields'] = {};
    for (const name of FIELDS) {
      const value = form.text(name);
      if (value !== undefined && value !== '') fields[name] = value;
    }
    const application = fields.client_id && (await this.applications.application(fields.client_id));
    if (!application)
      throw apiError(400, 'The app that sent you here is unknown: its client_id is missing or wrong.');
    const redirect_uri = chooseRedirectUri(application, fields.redirect_uri);
    const lenient = this.settings.LENIENT_CLIENTS;
    if (lenient && application.implicit_allowed) fields.response_type ??= 'token';
    return { application, redirect_uri, fields, scopes: listOfScopes(fields.scope, { lenient }) };
  }

  /** Stores what the user agreed to, and creates the token or code that the app requested. */
  async allow(
    user_id: number,
    request: AuthorizationRequest,
    consent: Omit<Consent, 'scopes'>,
  ): Promise<AuthorizationResult> {
    const { application, scopes } = request;
    const result = await this.create(request, user_id, (db) =>
      this.grants.add(db, user_id, application.client_id, { scopes, ...consent }),
    );
    return result!;
  }

  /** Uses an earlier consent, which includes the request. Returns undefined if the user has revoked it since. */
  reuse(request: AuthorizationRequest, { id, user_id }: Grant): Promise<AuthorizationResult | undefined> {
    return this.create(request, user_id, (db) => this.grants.lock(db, id));
  }

  private async create(
    { fields, scopes }: AuthorizationRequest,
    user_id: number,
    lockGrant: (db: EntityManager) => Promise<Grant | null>,
  ): Promise<AuthorizationResult | undefined> {
    const kind = fields.response_type as 'token' | 'code';
    const created = await this.database.transaction(
      async (db) => {
        const grant = await lockGrant(db);
        if (!grant) return undefined;
        if (kind === 'token') return this.keys.replaceImplicit(db, grant, scopes);
        const { redirect_uri, code_challenge } = fields;
        const code = await this.codes.create(db, grant, { scopes, redirect_uri, code_challenge });
        return { text: code, replaced: [] };
      },
      { concurrencyKey: `user ${user_id}` },
    );
    if (!created) return undefined;
    this.keys.forget(created.replaced);
    return { kind, text: created.text };
  }

  /** The CSP sources to which a sign-in that returns to `path` may redirect. */
  async formTargets(path: string): Promise<string[]> {
    const url = new URL(path, 'http://here.invalid');
    if (url.pathname !== '/user/oauth') return [];
    try {
      const { redirect_uri } = await this.read(new Form(parseFields(url.search.slice(1))));
      return listFormTargets(redirect_uri);
    } catch (error) {
      if (error instanceof ApiError && error.statusCode < 500) return [];
      throw error;
    }
  }
}

function chooseRedirectUri(application: OauthApplication, requested: string | undefined): string {
  const { redirect_uris } = application;
  // With one registered redirect URI the parameter is optional.
  const redirect_uri = requested ?? (redirect_uris.length === 1 ? redirect_uris[0] : undefined);
  if (redirect_uri === undefined)
    throw apiError(
      400,
      `${application.name} sent no redirect_uri, so the store doesn’t know where to send you back to.`,
    );
  if (!isSafe(redirect_uri) || !redirect_uris.some((registered) => isSameRedirect(registered, redirect_uri)))
    throw apiError(400, `${application.name} wants to send you to a redirect URI that it hasn’t registered.`);
  return redirect_uri;
}

export function findOAuthError({
  application,
  fields,
  scopes,
}: AuthorizationRequest): OAuthError | undefined {
  const rejected = (error: string, error_description: string): OAuthError => ({ error, error_description });
  if (fields.response_type === undefined) return rejected('invalid_request', 'response_type is missing');
  if (fields.state !== undefined && fields.state.length > MAX_STATE_CHARACTERS)
    return rejected('invalid_request', 'state is too long');
  if (fields.response_type !== 'code' && fields.response_type !== 'token')
    return rejected('unsupported_response_type', 'response_type must be code or token');
  const problem = fields.response_type === 'code' ? problemOfProof(fields) : undefined;
  if (problem) return rejected('invalid_request', problem);
  if (fields.response_type === 'token' && !application.implicit_allowed)
    return rejected('unauthorized_client', 'this app does not allow tokens in the redirect URI');
  const wrongScope = problemOfScopes(scopes, application.scopes);
  return wrongScope === undefined ? undefined : rejected('invalid_scope', wrongScope);
}

/** Why the PKCE parameters (RFC 7636) are invalid, or undefined. */
function problemOfProof({
  code_challenge,
  code_challenge_method,
}: AuthorizationRequest['fields']): string | undefined {
  if (code_challenge === undefined) return 'code_challenge is missing';
  if (code_challenge_method !== 'S256') return 'code_challenge_method must be S256';
  return CHALLENGE.test(code_challenge) ? undefined : 'code_challenge must be 43 characters';
}
