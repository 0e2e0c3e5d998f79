import { Controller, Get, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access/access';
import { Events } from '../../events/events';
import { ALL_OWN_GAMES } from '../../games/game-events';
import { type OwnWebhook, UserWebhooksService } from '../../operator/webhooks/user-webhooks.service';
import { isSuccess, type Outcome } from '../../operator/webhooks/webhook-attempts.service';
import { WebhooksService } from '../../operator/webhooks/webhooks.service';
import { OperatorError } from '../../platform/errors/operator-error';
import { apiError } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import type { Problems } from '../layout/fields';
import { seeOther } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { parseId } from '../layout/components';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import {
  deletePage,
  formPage,
  listPage,
  onePage,
  outcomeText,
  rotatePage,
  type EventTitle,
  type WebhookDraft,
  webhookPath,
  WEBHOOKS_PATH,
} from './webhooks.page';

@Pages()
@SignedIn()
@Controller('user/settings/webhooks')
export class WebhooksController {
  constructor(
    private readonly own: UserWebhooksService,
    private readonly webhooks: WebhooksService,
    private readonly events: Events,
  ) {}

  @Get()
  async list(@CurrentVisitor() visitor: SignedInVisitor) {
    return listPage(await this.own.list(visitor.user.id), visitor.user.canEditGames);
  }

  @Get('new')
  newForm(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.form(visitor, { url: '', game: '', events: this.events.forEditors.map(({ name }) => name) });
  }

  @Post()
  async create(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    requireSeller(visitor);
    const draft = this.readDraft(form);
    const { url, game, events } = draft;
    const user_id = visitor.user.id;
    if (events.length === 0) return this.form(visitor, draft, { events: 'Select at least one event.' });
    const game_id = game === '' ? ALL_OWN_GAMES : parseId(game);
    if (game_id !== ALL_OWN_GAMES && !(await this.own.canEdit(user_id, game_id)))
      return this.form(visitor, draft, { game: 'Select a game that you can edit.' });
    try {
      const { id, secret } = await this.webhooks.add({ url, events, game_id, user_id }, visitor.by);
      return seeOther(webhookPath(id), { secret });
    } catch (error) {
      if (error instanceof OperatorError) return this.form(visitor, draft, { url: error.message });
      throw error;
    }
  }

  @Get(':webhook_id')
  async one(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const webhook = await this.find(visitor, id);
    return onePage(visitor, webhook, await this.own.newestAttempts(webhook), this.eventTitle);
  }

  @Post(':webhook_id/test')
  async test(
    @Req() req: Request,
    @PathId('webhook_id') id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    req.inFlight.removeDeadline();
    return sent(id, await this.own.test(visitor.user.id, id, req.inFlight.client));
  }

  @Post(':webhook_id/attempts/:attempt_id')
  async repeat(
    @Req() req: Request,
    @PathId('webhook_id') id: number,
    @PathId('attempt_id') attempt_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    req.inFlight.removeDeadline();
    return sent(id, await this.own.repeat(visitor.user.id, id, attempt_id, req.inFlight.client));
  }

  @Get(':webhook_id/rotate')
  async confirmRotation(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    return rotatePage(visitor, await this.find(visitor, id));
  }

  @Post(':webhook_id/rotate')
  async rotate(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const secret = await this.webhooks.rotate(id, visitor.user.id, visitor.by);
    if (secret === undefined) throw noSuchWebhook();
    return seeOther(webhookPath(id), { secret });
  }

  @Post(':webhook_id/enable')
  async enable(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    await this.find(visitor, id);
    const isChanged = await this.webhooks.enable(id, visitor.user.id, visitor.by);
    return seeOther(webhookPath(id), isChanged ? { message: 'The webhook was enabled.' } : undefined);
  }

  @Get(':webhook_id/delete')
  async confirmDeletion(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    return deletePage(visitor, await this.find(visitor, id));
  }

  @Post(':webhook_id/delete')
  async delete(@PathId('webhook_id') id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    if (!(await this.webhooks.remove(id, visitor.user.id, visitor.by))) throw noSuchWebhook();
    return seeOther(WEBHOOKS_PATH, { message: 'The webhook was deleted.' });
  }

  private async find({ user }: SignedInVisitor, id: number): Promise<OwnWebhook> {
    const webhook = await this.own.find(user.id, id);
    if (!webhook) throw noSuchWebhook();
    return webhook;
  }

  private readonly eventTitle: EventTitle = (name) =>
    name === 'webhook.test' ? 'Test' : (this.events.find(name)?.title ?? name);

  private readDraft(form: Form): WebhookDraft {
    const names = this.events.forEditors.map(({ name }) => name);
    return {
      url: (form.text('url') ?? '').trim(),
      game: form.text('game') ?? '',
      events: names.filter((name) => form.isChecked(`event ${name}`)),
    };
  }

  private async form(visitor: SignedInVisitor, draft: WebhookDraft, problems?: Problems<keyof WebhookDraft>) {
    requireSeller(visitor);
    return formPage(visitor, await this.own.games(visitor.user.id), this.events.forEditors, draft, problems);
  }
}

function sent(id: number, outcome: Outcome | undefined) {
  if (!outcome) throw noSuchWebhook();
  const { status, duration_ms } = outcome;
  const responded =
    typeof status === 'number' ? `responded with ${status}` : `didn’t respond: ${outcomeText(status)}`;
  const text = `Your receiver ${responded} (${duration_ms} ms).`;
  return seeOther(webhookPath(id), isSuccess(outcome) ? { message: text } : { problem: text });
}

const noSuchWebhook = () => apiError(404, 'This webhook doesn’t exist.');

function requireSeller({ user }: SignedInVisitor): void {
  if (!user.canEditGames) throw apiError(404, 'You can’t edit any games.');
}
