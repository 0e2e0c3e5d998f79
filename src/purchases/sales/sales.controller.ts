import { Controller, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { OperatorMay } from '../../operator/tokens/operator-may';
import { type Actor, CurrentOperator } from '../../operator/tokens/actor';
import { IdempotencyKey } from '../../idempotency/idempotency-key';
import { OncePerKey, type RetryKey } from '../../idempotency/idempotency.service';
import { Params } from '../../platform/input/params.decorator';
import { Fails } from '../../platform/server/routes';
import { RefundResponse, RefundRequest, SaleResponse, SaleRequest } from './sale.dto';
import { SalesService } from './sales.service';

@ApiTags('Selling')
@Controller('operator/purchases')
export class SalesController {
  constructor(private readonly sales: SalesService) {}

  @Post()
  @ApiOperation({
    summary: 'Create a purchase',
    description:
      'One transaction creates the purchase and its download keys, and updates the counts and earnings of its games. The next request finds them.',
  })
  @OperatorMay('purchases')
  @OncePerKey()
  @ApiOkResponse({ type: SaleResponse })
  @Fails(404, 'invalid game', 'invalid bundle', 'invalid user')
  @Fails(409, 'reference `order-10045` is another sale')
  sell(
    @Params() request: SaleRequest,
    @CurrentOperator() by: Actor,
    @IdempotencyKey() retry: RetryKey | undefined,
  ): Promise<SaleResponse> {
    return this.sales.sell(request, by, retry);
  }

  @Post(':purchase_id/refund')
  @ApiOperation({
    summary: 'Refund a purchase',
    description:
      'Revokes its download keys unless `keep_keys` is set. A repeated request returns the same response.',
  })
  @OperatorMay('purchases')
  @OncePerKey()
  @ApiOkResponse({ type: RefundResponse })
  @Fails(404, 'invalid purchase')
  refund(
    @Params() request: RefundRequest,
    @CurrentOperator() by: Actor,
    @IdempotencyKey() retry: RetryKey | undefined,
  ): Promise<RefundResponse> {
    return this.sales.refund(request, by, retry);
  }
}
