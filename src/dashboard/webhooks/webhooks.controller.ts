import { Controller, Get, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { SessionsService } from '../../auth/sign-in/sessions.service';
import { ALL_OWN_GAMES, WEBHOOK_EVENTS } from '../../operator/webhooks/announcements';
import { type OwnWebhook, UserWebhooksService } from '../../operator/webhooks/user-webhooks.service';
import { isSuccess, type Outcome } from '../../operator/webhooks/webhook-attempts.service';
import { WebhooksService } from '../../operator/webhooks/webhooks.service';
import { OperatorError } from '../../platform/config/operator-error';
import { apiError } from '../../platform/http/api-error';
import { Form } from '../../platform/http/form';
import type { Problems } from '../layout/fields';
import { Layout, seeOther } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { idOf } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import {
  deletePage,
  formPage,
  listPage,
  NEW_WEBHOOK,
  onePage,
  outcomeText,
  rotatePage,
  type WebhookDraft,
  webhookPath,
  WEBHOOKS_PATH,
} from './webhooks.page';

/** The pages of a seller's own webhooks. */
@Pages()
@Controller('user/settings/webhooks')
export class WebhooksController {
  constructor(
    private readonly own: UserWebhooksService,
    private readonly webhooks: WebhooksService,
    private readonly sessions: SessionsService,
    private readonly layout: Layout,
  ) {}

  @Get()
  @SignedIn()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    const webhooks = await this.own.list(visitor.user.id);
    const notice = await this.sessions.takeNotice(visitor.token);
    return this.layout.show(visitor, listPage(webhooks, visitor.user.sells, notice.done));
  }

  @Get('new')
  @SignedIn()
  blank(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.form(visitor, NEW_WEBHOOK);
  }

  @Post()
  @SignedIn()
  async create(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    requireSeller(visitor);
    const draft = draftOf(form);
    const { url, game, events } = draft;
    const user_id = visitor.user.id;
    if (events.length === 0) return this.form(visitor, draft, { events: 'Select at least one event.' });
    const game_id = game === '' ? ALL_OWN_GAMES : idOf(game);
    if (game_id !== ALL_OWN_GAMES && !(await this.own.canEdit(user_id, game_id)))
      return this.form(visitor, draft, { game: 'Select a game that you can edit.' });
    try {
      const { id, secret } = await this.webhooks.add({ url, events, game_id, user_id }, visitor.by);
      await this.sessions.setNotice(visitor.token, { secret });
      return seeOther(webhookPath(id));
    } catch (error) {
      if (error instanceof OperatorError) return this.form(visitor, draft, { url: error.message });
      throw error;
    }
  }

  @Get(':webhook_id')
  @SignedIn()
  async one(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const webhook = await this.find(visitor, id);
    const attempts = await this.own.newestAttempts(webhook);
    const notice = await this.sessions.takeNotice(visitor.token);
    return this.layout.show(visitor, onePage(visitor, webhook, attempts, notice));
  }

  @Post(':webhook_id/test')
  @SignedIn()
  async test(
    @Req() req: Request,
    @PathId('webhook_id') id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    req.exchange.takesLong();
    return this.sent(visitor, id, await this.own.test(visitor.user.id, id, req.exchange.client));
  }

  @Post(':webhook_id/attempts/:attempt_id')
  @SignedIn()
  async repeat(
    @Req() req: Request,
    @PathId('webhook_id') id: number,
    @PathId('attempt_id') attempt_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    req.exchange.takesLong();
    return this.sent(
      visitor,
      id,
      await this.own.repeat(visitor.user.id, id, attempt_id, req.exchange.client),
    );
  }

  @Get(':webhook_id/rotate')
  @SignedIn()
  async confirmRotation(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    return this.layout.show(visitor, rotatePage(visitor, await this.find(visitor, id)));
  }

  @Post(':webhook_id/rotate')
  @SignedIn()
  async rotate(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const secret = await this.webhooks.rotate(id, visitor.user.id, visitor.by);
    if (secret === undefined) throw noSuchWebhook();
    await this.sessions.setNotice(visitor.token, { secret });
    return seeOther(webhookPath(id));
  }

  @Post(':webhook_id/enable')
  @SignedIn()
  async enable(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    await this.find(visitor, id);
    if (await this.webhooks.enable(id, visitor.user.id, visitor.by))
      await this.sessions.setNotice(visitor.token, { done: 'The webhook is enabled.' });
    return seeOther(webhookPath(id));
  }

  @Get(':webhook_id/delete')
  @SignedIn()
  async confirmDeletion(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    return this.layout.show(visitor, deletePage(visitor, await this.find(visitor, id)));
  }

  @Post(':webhook_id/delete')
  @SignedIn()
  async delete(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    if (!(await this.webhooks.remove(id, visitor.user.id, visitor.by))) throw noSuchWebhook();
    await this.sessions.setNotice(visitor.token, { done: 'The webhook is deleted.' });
    return seeOther(WEBHOOKS_PATH);
  }

  private async find({ user }: SignedInVisitor, id: number): Promise<OwnWebhook> {
    const webhook = await this.own.find(user.id, id);
    if (!webhook) throw noSuchWebhook();
    return webhook;
  }

  private async form(visitor: SignedInVisitor, draft: WebhookDraft, problems?: Problems<keyof WebhookDraft>) {
    requireSeller(visitor);
    return this.layout.show(
      visitor,
      formPage(visitor, await this.own.games(visitor.user.id), draft, problems),
    );
  }

  private async sent(visitor: SignedInVisitor, id: number, outcome: Outcome | undefined) {
    if (!outcome) throw noSuchWebhook();
    const { status, duration_ms } = outcome;
    const text = `${typeof status === 'number' ? `Your receiver responded ${status}` : `Your receiver didn’t respond: ${outcomeText(status)}`} (${duration_ms} ms).`;
    await this.sessions.setNotice(visitor.token, isSuccess(outcome) ? { done: text } : { problem: text });
    return seeOther(webhookPath(id));
  }
}

const noSuchWebhook = () => apiError(404, 'This webhook doesn’t exist.');

function requireSeller({ user }: SignedInVisitor): void {
  if (!user.sells) throw apiError(404, 'You can’t edit any games.');
}

const draftOf = (form: Form): WebhookDraft => ({
  url: (form.text('url') ?? '').trim(),
  game: form.text('game') ?? '',
  events: WEBHOOK_EVENTS.filter((event) => form.ticked(`event ${event}`)),
});
