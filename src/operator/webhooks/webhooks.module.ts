import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module';
import { Webhook } from './webhook.entity';
import { WebhookDeliveries } from './webhook-deliveries.service';
import { WebhookDelivery } from './webhook-delivery.entity';
import { WebhooksService } from './webhooks.service';

@Module({
  imports: [AuthModule, TypeOrmModule.forFeature([Webhook, WebhookDelivery])],
  providers: [WebhookDeliveries, WebhooksService],
  exports: [WebhookDeliveries],
})
export class WebhooksModule {}
