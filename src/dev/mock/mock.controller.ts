import { Body, Controller, Delete, Get, Post, Put, Req, Res, UseInterceptors } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { SCOPES } from '../../auth/access/scopes';
import { TokensService } from '../../auth/jwt/tokens.service';
import { ApiError, apiError, badRequest } from '../../platform/errors/api-error';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { StreamedBody } from '../../platform/input/body.guard';
import { Params } from '../../platform/input/params.decorator';
import { ImportProblems } from '../../operator/import/problems';
import { RefundResponse, RefundRequest, SaleResponse } from '../../purchases/sales/sale.dto';
import { SalesService } from '../../purchases/sales/sales.service';
import { Faults } from './faults.service';
import {
  FaultRequest,
  MockRefundRequest,
  MockSaleRequest,
  QuirksRequest,
  RecordedRequestsRequest,
  MockTokenRequest,
} from './mock.dto';
import { sendMockPage } from './mock.page';
import { LiveQuirks } from './quirks.service';
import { RecordedRequests } from './recorded-requests.service';
import { ResetInterceptor } from './reset.interceptor';
import { ResetService } from './reset.service';

const MAX_SEED_BYTES = 64 * 1024 * 1024;
const EXPIRED_SECONDS = 300;
/** Shown in the audit log. */
const MOCK = { operator: 'mock' };

/** What a test does with the service besides calling its API. Needs no credential. */
@ApiExcludeController()
@Controller('mock')
@Public()
export class MockController {
  constructor(
    private readonly resets: ResetService,
    private readonly sales: SalesService,
    private readonly tokens: TokensService,
    private readonly faults: Faults,
    private readonly recorded: RecordedRequests,
    private readonly quirks: LiveQuirks,
  ) {}

  @Get()
  page(@Res() res: Response): void {
    sendMockPage(res);
  }

  @Post('reset')
  @StreamedBody()
  async reset(@Req() req: Request) {
    req.inFlight.removeDeadline();
    try {
      await this.resets.reset(await readText(req));
    } catch (error) {
      if (error instanceof ImportProblems) throw new ApiError(400, error.lines);
      throw error;
    }
    return { success: true };
  }

  @Post('sales')
  @UseInterceptors(ResetInterceptor)
  sell(@Params() request: MockSaleRequest): Promise<SaleResponse> {
    return this.sales.sell(request, MOCK);
  }

  @Post('refunds')
  @UseInterceptors(ResetInterceptor)
  async refund(@Params() { purchase_id, reference, keep_keys }: MockRefundRequest): Promise<RefundResponse> {
    const id = purchase_id ?? (await this.resets.findPurchase(reference!));
    if (id === undefined) throw apiError(404, 'invalid purchase');
    return this.sales.refund(Object.assign(new RefundRequest(), { purchase_id: id, keep_keys }), MOCK);
  }

  @Post('tokens')
  @UseInterceptors(ResetInterceptor)
  async token(@Params() { user_id, game_id, scope, expires_in, issuer }: MockTokenRequest) {
    const scopes = scope.split(/\s+/).filter(Boolean);
    const unknown = scopes.filter((one) => !(one in SCOPES));
    if (unknown.length > 0) throw badRequest(`unknown scopes: ${unknown.join(', ')}`);
    await this.resets.requirePlayerAndGame(user_id, game_id);
    // An expired token must be expired for verifiers with a leeway, too.
    const lifetime_seconds = Math.trunc(expires_in) - (expires_in < 0 ? EXPIRED_SECONDS : 0);
    const { key, expires_at } = await this.tokens.issue({
      user_id,
      game_id,
      scopes,
      api_key_id: null,
      lifetime_seconds,
      issuer,
    });
    return { key, expires_at: modernTimestamp(new Date(expires_at * 1000).toISOString()) };
  }

  @Post('faults')
  addFault(@Body() request: FaultRequest) {
    return { fault: this.faults.add(request) };
  }

  @Get('faults')
  listFaults() {
    return { faults: this.faults.list() };
  }

  @Delete('faults')
  clearFaults() {
    this.faults.clear();
    return { success: true };
  }

  @Get('requests')
  requests(@Params() { since }: RecordedRequestsRequest) {
    return { requests: this.recorded.since(since) };
  }

  @Get('quirks')
  showQuirks() {
    return this.quirks.get();
  }

  @Put('quirks')
  changeQuirks(@Params() request: QuirksRequest) {
    return this.quirks.change(request);
  }
}

async function readText(req: Request): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_SEED_BYTES) throw apiError(413, 'request too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
