import { Controller, Get, Param, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access';
import { Audit } from '../../auth/audit';
import { ApplicationsService, MAX_APPLICATIONS } from '../../auth/oauth/applications.service';
import type { OauthApplication } from '../../auth/oauth/oauth-application.entity';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { apiError } from '../../platform/http/api-error';
import { Form } from '../../platform/http/form';
import { isWrong } from '../layout/fields';
import { Layout, seeOther } from '../layout/layout';
import { FormFields, Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';
import { draftOf, EMPTY } from './application-draft';
import { applicationPage, applicationsPage, deleteApplicationPage, PATH, pathOf } from './applications.page';

/** The pages of a user's own OAuth apps. */
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
    return this.layout.show(visitor, applicationsPage(applications, notice.done));
  }

  @Get('new')
  @SignedIn()
  blank(@CurrentVisitor() visitor: Visitor) {
    return this.form(visitor, EMPTY);
  }

  @Post()
  @SignedIn()
  async make(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const { problems, ...fields } = draftOf(form);
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
    @FormFields() form: Form,
    @Param('client_id') client_id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const application = await this.ownApplication(visitor, client_id);
    const { problems, ...fields } = draftOf(form);
    if (isWrong(problems)) return this.form(visitor, fields, { application, problems });
    if (!(await this.applications.change(visitor.user.id, client_id, fields))) throw noSuchApplication();
    this.audit.record({ event: 'app.updated', ...visitor.by, client_id });
    await this.sessions.setNotice(visitor.token, { done: 'Your changes were saved.' });
    return seeOther(pathOf(client_id));
  }

  @Get(':client_id/delete')
  @SignedIn()
  async confirm(@Param('client_id') client_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const application = await this.ownApplication(visitor, client_id);
    return this.layout.show(visitor, deleteApplicationPage(visitor, application));
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

  private form(...page: Parameters<typeof applicationPage>) {
    return this.layout.show(page[0], applicationPage(...page));
  }
}

const noSuchApplication = () => apiError(404, 'This app doesn’t exist.');
