import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module';
import { EventsModule } from '../../events/events.module';
import { UserWebhooksService } from './user-webhooks.service';
import { Webhook } from './webhook.entity';
import { WebhookAttempt } from './webhook-attempt.entity';
import { WebhookAttempts } from './webhook-attempts.service';
import { WebhookDeliveries } from './webhook-deliveries.service';
import { WebhookDelivery } from './webhook-delivery.entity';
import { WebhooksService } from './webhooks.service';

@Module({
  imports: [AuthModule, EventsModule, TypeOrmModule.forFeature([Webhook, WebhookAttempt, WebhookDelivery])],
  providers: [UserWebhooksService, WebhookAttempts, WebhookDeliveries, WebhooksService],
  exports: [EventsModule, UserWebhooksService, WebhookAttempts, WebhookDeliveries, WebhooksService],
})
export class WebhooksModule {}
