import { Controller, Get, Param, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { Audit } from '../../audit/audit';
import { ApplicationsService, MAX_APPLICATIONS } from '../../auth/oauth/applications.service';
import type { OauthApplication } from '../../auth/accounts/oauth-application.entity';
import { apiError } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { hasProblems } from '../layout/fields';
import { seeOther } from '../layout/layout';
import { FormFields, Pages } from '../layout/page';
import { CurrentVisitor, type SignedInVisitor, Visitor } from '../layout/visitor';
import { readApplicationDraft, EMPTY_APPLICATION } from './application-draft';
import {
  applicationPage,
  applicationsPage,
  deleteApplicationPage,
  APPLICATIONS_PATH,
  applicationPath,
} from './applications.page';

@Pages()
@SignedIn()
@Controller('user/settings/oauth-apps')
export class ApplicationsController {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly audit: Audit,
  ) {}

  @Get()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    return applicationsPage(await this.applications.listApplications(visitor.user.id));
  }

  @Get('new')
  newForm(@CurrentVisitor() visitor: Visitor) {
    return applicationPage(visitor, EMPTY_APPLICATION);
  }

  @Post()
  async create(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const { problems, ...fields } = readApplicationDraft(form);
    if (hasProblems(problems)) return applicationPage(visitor, fields, { problems });
    const client_id = await this.applications.create(visitor.user.id, fields);
    if (client_id === undefined)
      return applicationPage(visitor, fields, {
        problem: `You have reached the limit of ${MAX_APPLICATIONS} apps. Delete an app that you no longer need, and try again.`,
      });
    this.audit.record({ event: 'app.created', ...visitor.by, client_id });
    return seeOther(applicationPath(client_id), { message: `${fields.name} was registered.` });
  }

  @Get(':client_id')
  async one(@Param('client_id') client_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const application = await this.ownApplication(visitor, client_id);
    return applicationPage(visitor, application, { application });
  }

  @Post(':client_id')
  async update(
    @FormFields() form: Form,
    @Param('client_id') client_id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const application = await this.ownApplication(visitor, client_id);
    const { problems, ...fields } = readApplicationDraft(form);
    if (hasProblems(problems)) return applicationPage(visitor, fields, { application, problems });
    if (!(await this.applications.update(visitor.user.id, client_id, fields))) throw noSuchApplication();
    this.audit.record({ event: 'app.updated', ...visitor.by, client_id });
    return seeOther(applicationPath(client_id), { message: 'Your changes were saved.' });
  }

  @Get(':client_id/delete')
  async confirm(@Param('client_id') client_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    return deleteApplicationPage(visitor, await this.ownApplication(visitor, client_id));
  }

  @Post(':client_id/delete')
  async delete(@Param('client_id') client_id: string, @CurrentVisitor() visitor: SignedInVisitor) {
    const { name } = await this.ownApplication(visitor, client_id);
    if (!(await this.applications.delete(visitor.user.id, client_id))) throw noSuchApplication();
    this.audit.record({ event: 'app.deleted', ...visitor.by, client_id });
    return seeOther(APPLICATIONS_PATH, { message: `${name} was deleted.` });
  }

  private async ownApplication({ user }: SignedInVisitor, client_id: string): Promise<OauthApplication> {
    const application = client_id.includes('\0')
      ? null
      : await this.applications.findApplication(user.id, client_id);
    if (!application) throw noSuchApplication();
    return application;
  }
}

const noSuchApplication = () => apiError(404, 'This app doesn’t exist.');
