import { Controller, Req, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { OperatorMay } from '../tokens/operator-may';
import { type Actor, CurrentOperator } from '../tokens/actor';
import { OperatorEvents } from '../tokens/operator-events';
import { hashApiKey, listPeppers } from '../../auth/keys/api-key';
import { IdempotencyKey } from '../../idempotency/idempotency-key';
import { Settings } from '../../platform/config/settings';
import { apiError } from '../../platform/errors/api-error';
import type { LongResponse } from '../../platform/output/list-streams';
import { Fails } from '../../platform/server/routes';
import { IdempotencyService, OncePerKey, type RetryKey } from '../../idempotency/idempotency.service';
import { Params } from '../../platform/input/params.decorator';
import { ErasureService, withoutZeros } from './erasure.service';
import { ExportService } from './export.service';
import { ErasedResponse, PersonRequest, PersonByIdRequest } from './people.dto';
import { People, type Person } from './person';

@ApiTags('Operations')
@Controller('operator')
export class PeopleController {
  constructor(
    private readonly people: People,
    private readonly exports: ExportService,
    private readonly erasure: ErasureService,
    private readonly events: OperatorEvents,
    private readonly idempotency: IdempotencyService,
    private readonly settings: Settings,
  ) {}

  @Post('users/:user_id/export')
  @ApiOperation({
    summary: "Export a user's data",
    description: 'One JSON object per line, with a `type`.',
  })
  @OperatorMay('users')
  @ApiOkResponse({ content: { 'application/x-ndjson': { schema: { type: 'string' } } } })
  @Fails(404, 'invalid user')
  async export(
    @CurrentOperator() by: Actor,
    @Params() { user_id }: PersonByIdRequest,
  ): Promise<LongResponse> {
    const person = await this.withId(user_id);
    return this.exports.response(person, (counts) =>
      this.events.record('user.exported', by, { counts, user_id }),
    );
  }

  @Post('users/:user_id/erase')
  @ApiOperation({
    summary: "Erase a user's personal data",
    description:
      'The account remains under a name such as `erased-7`. Purchases keep amounts, dates and games.',
  })
  @OperatorMay('users')
  @OncePerKey()
  @ApiOkResponse({ type: ErasedResponse })
  @Fails(404, 'invalid user')
  erase(
    @Req() req: Request,
    @CurrentOperator() by: Actor,
    @Params() request: PersonByIdRequest,
    @IdempotencyKey() retry: RetryKey | undefined,
  ): Promise<ErasedResponse> {
    return this.idempotency.storedAfter(retry, request, async () =>
      this.erased(req, by, await this.withId(request.user_id)),
    );
  }

  @Post('people/erase')
  @ApiOperation({
    summary: "Erase a buyer's personal data",
    description: 'Also erases the account that verified the email address.',
  })
  @OperatorMay('users')
  @OncePerKey()
  @ApiOkResponse({ type: ErasedResponse })
  eraseByAddress(
    @Req() req: Request,
    @CurrentOperator() by: Actor,
    @Params() { email }: PersonRequest,
    @IdempotencyKey() retry: RetryKey | undefined,
  ): Promise<ErasedResponse> {
    // Only a keyed hash of the email address is stored, because the address could be guessed from a plain hash.
    const [pepper] = listPeppers(this.settings) as [string];
    const request = { email: hashApiKey(email, pepper).toString('base64') };
    return this.idempotency.storedAfter(retry, request, async () =>
      this.erased(req, by, await this.people.findByEmail(email)),
    );
  }

  private async withId(user_id: number): Promise<Person> {
    const person = await this.people.withId(user_id);
    if (!person) throw apiError(404, 'invalid user');
    return person;
  }

  private async erased(req: Request, by: Actor, person: Person): Promise<ErasedResponse> {
    req.inFlight.removeDeadline();
    const erased = await this.erasure.erase(person);
    const counts = withoutZeros(erased);
    this.events.record('user.erased', by, { counts, user_id: person.user_id ?? undefined });
    return { erased };
  }
}
