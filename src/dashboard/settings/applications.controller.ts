import { Controller, Get, Param, Req, Post } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { SCOPES_OF_OTHERS } from '../../auth/scopes';
import { apiError } from '../../platform/http/api-error';
import {
  type ApplicationFields,
  ApplicationsService,
  MAX_APPLICATIONS,
} from '../../auth/oauth/applications.service';
import type { OauthApplication } from '../../auth/oauth/oauth-application.entity';
import { Audit } from '../../auth/audit';
import { draftOf, EMPTY } from './application-draft';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { formOf } from '../../platform/http/form';
import { html, type Html } from '../layout/html';
import { formToken, Layout, type Page, seeOther } from '../layout/layout';
import { Pages } from '../layout/page';
import {
  alert,
  checkbox,
  confirmation,
  copyable,
  day,
  described,
  done,
  isWrong,
  nameField,
  problemAt,
  type Problems,
  scopeBoxes,
  table,
} from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';

const PATH = '/user/settings/oauth-apps';

/** The pages of a user's own OAuth applications. */
@Pages()
@Controller('user/settings/oauth-apps')
export class ApplicationsController {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly sessions: SessionsService,
    private readonly layout: Layout,
    private readonly audit: Audit,
  ) {}

  @Get()
  @SignedIn()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    const applications = await this.applications.applicationsOf(visitor.user.id);
    const notice = await this.sessions.takeNotice(visitor.token);
    return this.show(visitor, {
      title: 'Your apps',
      main: html`<div class="head">
          <h1>Your apps</h1>
          <a class="button" href="${PATH}/new">Register an app</a>
        </div>
        <p class="lead">Apps that you registered. They can ask other users for permission to act for them.</p>
        ${done(notice.done)}
        ${
          applications.length === 0
            ? html`<p class="empty">You haven’t registered any apps yet.</p>`
            : table(
                'Your apps',
                ['Name', 'Client ID', 'Registered', { buttons: 'Change' }],
                applications.map(row),
              )
        }`,
    });
  }

  @Get('new')
  @SignedIn()
  blank(@CurrentVisitor() visitor: Visitor) {
    return this.form(visitor, EMPTY);
  }

  @Post()
  @SignedIn()
  async make(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    const { problems, ...fields } = draftOf(await formOf(req));
    if (isWrong(problems)) return this.form(visitor, fields, { problems });
    const client_id = await this.applications.make(visitor.user.id, fields);
    if (client_id === undefined)
      return this.form(visitor, fields, {
        problem: `You have ${MAX_APPLICATIONS} apps. Delete one first.`,
      });
    this.audit.record({ event: 'app.created', ...visitor.by, client_id });
    await this.sessions.setNotice(visitor.token, { done: `${fields.name} was registered.` });
    return seeOther(pathOf(client_id));
  }

  @Get(':client_id')
  @SignedIn()
  async one(@Param('client_id') client_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const application = await this.ownApplication(visitor, client_id);
    return this.form(visitor, application, {
      application,
      notice: (await this.sessions.takeNotice(visitor.token)).done,
    });
  }

  @Post(':client_id')
  @SignedIn()
  async change(
    @Req() req: Request,
    @Param('client_id') client_id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const application = await this.ownApplication(visitor, client_id);
    const { problems, ...fields } = draftOf(await formOf(req));
    if (isWrong(problems)) return this.form(visitor, fields, { application, problems });
    if (!(await this.applications.change(visitor.user.id, client_id, fields))) throw noSuchApplication();
    this.audit.record({ event: 'app.updated', ...visitor.by, client_id });
    await this.sessions.setNotice(visitor.token, { done: 'Your changes were saved.' });
    return seeOther(pathOf(client_id));
  }

  @Get(':client_id/delete')
  @SignedIn()
  async confirm(@Param('client_id') client_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const { name } = await this.ownApplication(visitor, client_id);
    return this.show(
      visitor,
      confirmation(visitor, {
        title: 'Delete an app',
        question: `Delete ${name}?`,
        facts: html`<p>
          The app loses access to all users’ accounts, and its tokens stop working immediately. This can’t be
          undone.
        </p>`,
        action: `${pathOf(client_id)}/delete`,
        button: 'Delete the app',
        back: pathOf(client_id),
      }),
    );
  }

  @Post(':client_id/delete')
  @SignedIn()
  async delete(@Param('client_id') client_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const { name } = await this.ownApplication(visitor, client_id);
    if (!(await this.applications.delete(visitor.user.id, client_id))) throw noSuchApplication();
    this.audit.record({ event: 'app.deleted', ...visitor.by, client_id });
    await this.sessions.setNotice(visitor.token, { done: `${name} was deleted.` });
    return seeOther(PATH);
  }

  private async ownApplication({ user }: SignedInVisitor, client_id: string): Promise<OauthApplication> {
    const application = client_id.includes('\0')
      ? null
      : await this.applications.applicationOf(user.id, client_id);
    if (!application) throw noSuchApplication();
    return application;
  }

  private show(visitor: Visitor, page: Page) {
    return this.layout.show(visitor, { ...page, section: PATH });
  }

  private form(
    visitor: Visitor,
    { name, redirect_uris, scopes, implicit_allowed, may_start_games }: ApplicationFields,
    {
      application,
      problems = {},
      problem,
      notice,
    }: { application?: OauthApplication; problems?: Problems; problem?: string; notice?: string } = {},
  ) {
    const title = application ? application.name : 'Register an app';
    return this.show(visitor, {
      title,
      status: problem || isWrong(problems) ? 400 : 200,
      main: html`<h1>${title}</h1>
        ${done(notice)} ${problem && alert(problem)}
        ${
          application &&
          html`<section class="card stack" aria-label="For your program">
            ${copyable('client-id', 'Client ID', application.client_id)}
          </section>`
        }
        <form method="post" action="${application ? pathOf(application.client_id) : PATH}" class="card stack">
          ${formToken(visitor)} ${nameField({ id: 'name', label: 'Name' }, name, problems.name)}
          <div class="field">
            <label for="redirect_uris">Redirect URIs</label>
            <textarea
              id="redirect_uris"
              name="redirect_uris"
              rows="3"
              required
              spellcheck="false"
              ${described('redirect_uris', problems.redirect_uris, 'redirect_help')}
              placeholder="https://game.example/signed-in"
            >
${redirect_uris.join('\n')}</textarea>
            ${problemAt('redirect_uris', problems.redirect_uris)}
            <small id="redirect_help"
              >One per line, exactly as your program sends them. <code>http://127.0.0.1/…</code> allows any
              port, for a program on the user’s computer. <code>urn:ietf:wg:oauth:2.0:oob</code> shows a code
              for the user to copy.</small
            >
          </div>
          <fieldset ${problems.scopes && html` aria-describedby="scopes-problem"`}>
            <legend>It can request</legend>
            ${problemAt('scopes', problems.scopes)} ${scopeBoxes(SCOPES_OF_OTHERS, scopes)}
            ${checkbox(
              'may_start_games',
              may_start_games,
              html`Start games for users<br /><small
                  >For launchers: the app creates tokens that identify the player to a game.</small
                >`,
            )}
          </fieldset>
          <fieldset>
            <legend>OAuth flows</legend>
            ${checkbox(
              'implicit_allowed',
              implicit_allowed,
              html`Allow tokens in the redirect URI<br /><small
                  >For older programs that use <code>response_type=token</code>. New programs should use
                  codes, which are always allowed.</small
                >`,
            )}
          </fieldset>
          <div class="buttons">
            <button>${application ? 'Save' : 'Register'}</button>
            <a class="button quiet" href="${PATH}">Cancel</a>
          </div>
        </form>
        ${application && html`<p><a class="button quiet danger" href="${pathOf(application.client_id)}/delete">Delete this app</a></p>`}`,
    });
  }
}

const pathOf = (client_id: string) => `${PATH}/${encodeURIComponent(client_id)}`;

const noSuchApplication = () => apiError(404, 'This app doesn’t exist.');

const row = ({ client_id, name, created_at }: OauthApplication): Html =>
  html`<tr>
    <th scope="row"><a href="${pathOf(client_id)}">${name}</a></th>
    <td data-label="Client ID"><code>${client_id}</code></td>
    <td data-label="Registered">${day(created_at)}</td>
    <td class="actions">
      <a class="button quiet" href="${pathOf(client_id)}">Change<span class="hidden"> ${name}</span></a>
    </td>
  </tr>`;
