import { Controller, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { IdempotencyKey } from '../../idempotency/idempotency-key';
import { OncePerKey, type RetryKey } from '../../idempotency/idempotency.service';
import { type Actor, CurrentOperator } from '../../operator/tokens/actor';
import { OperatorMay } from '../../operator/tokens/operator-may';
import { Params } from '../../platform/input/params.decorator';
import { Fails } from '../../platform/server/routes';
import { CreateLinkRequest, LinkResponse, RequestedLinkRequest } from './link.dto';
import { LinksService } from './links.service';

@ApiTags('Operations')
@Controller('operator')
export class LinksController {
  constructor(private readonly links: LinksService) {}

  @Post('users/:user_id/link')
  @ApiOperation({
    summary: 'Create a link into an account',
    description:
      'The link works once, for 24 hours, and replaces older links of the same user and purpose. Send it only to the owner of the account.',
  })
  @OperatorMay('users')
  @OncePerKey()
  @ApiOkResponse({ type: LinkResponse })
  @Fails(404, 'invalid user')
  create(
    @Params() request: CreateLinkRequest,
    @CurrentOperator() by: Actor,
    @IdempotencyKey() retry: RetryKey | undefined,
  ): Promise<LinkResponse> {
    return this.links.create(request, by, retry);
  }

  @Post('links')
  @ApiOperation({
    summary: 'Create a link that a person requested',
    description:
      'Creates the link for the `request_id` of an event `link.requested`, within 24 hours. Send the link to the email address of the event.',
  })
  @OperatorMay('users')
  @OncePerKey()
  @ApiOkResponse({ type: LinkResponse })
  @Fails(404, 'invalid request_id')
  @Fails(409, 'request_id was used')
  fulfill(
    @Params() request: RequestedLinkRequest,
    @CurrentOperator() by: Actor,
    @IdempotencyKey() retry: RetryKey | undefined,
  ): Promise<LinkResponse> {
    return this.links.fulfill(request, by, retry);
  }
}
