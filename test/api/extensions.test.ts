import { createReadStream } from 'node:fs';
import {
  All,
  type ArgumentsHost,
  BadRequestException,
  Body,
  Catch,
  ClassSerializerInterceptor,
  ConflictException,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  Get,
  Header,
  HttpException,
  Injectable,
  Logger,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  NotFoundException,
  NotImplementedException,
  type OnApplicationBootstrap,
  Param,
  ParseIntPipe,
  Post,
  Query,
  RawBody,
  Req,
  RequestMethod,
  ServiceUnavailableException,
  StreamableFile,
  UploadedFile,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  Version,
  VersioningType,
} from '@nestjs/common';
import { APP_INTERCEPTOR, ExternalContextCreator, NestFactory, RouterModule } from '@nestjs/core';
import { AuthGuard } from '@nestjs/passport';
import { FileInterceptor, type NestExpressApplication } from '@nestjs/platform-express';
import { SchedulerRegistry } from '@nestjs/schedule';
import { ApiOperation, ApiParam, ApiProperty, PartialType } from '@nestjs/swagger';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Expose, Transform, Type } from 'class-transformer';
import { IsArray, IsInt, IsNumber, IsObject, IsOptional, IsString, ValidateNested } from 'class-validator';
import type { Request, Response } from 'express';
import { firstValueFrom, type Observable } from 'rxjs';
import { Column, Entity, EntityManager, In, PrimaryColumn, type Repository } from 'typeorm';
import { AppModule } from '../../src/app.module';
import { User } from '../../src/auth/accounts/user.entity';
import { Public, Scopes, SignedIn } from '../../src/auth/access/access';
import { CurrentCredential, type Credential } from '../../src/auth/access/credential';
import { ApiError } from '../../src/platform/errors/api-error';
import { StreamedBody } from '../../src/platform/input/body.guard';
import { Between, Id, IdList } from '../../src/platform/input/parameters';
import { Params } from '../../src/platform/input/params.decorator';
import { describeApi } from '../../src/platform/openapi/describe-api';
import { UsersService } from '../../src/users/users.service';
import { databaseUrl, logged, openApp, PEPPER, useStore } from '../support/app';
import { failure } from '../support/http';
import { make } from '../support/make';

// A module that an integrator adds to the service.
useStore();

@Catch(HttpException)
class StatusFilter implements ExceptionFilter {
  catch(error: HttpException, host: ArgumentsHost) {
    host.switchToHttp().getResponse<Response>().status(error.getStatus()).json({ caught: error.message });
  }
}

@Catch(ServiceUnavailableException)
class HealthFilter implements ExceptionFilter {
  catch(error: ServiceUnavailableException, host: ArgumentsHost) {
    host.switchToHttp().getResponse<Response>().status(503).json(error.getResponse());
  }
}

@Catch(BadRequestException, ApiError)
class UnprocessableFilter implements ExceptionFilter {
  catch(error: BadRequestException | ApiError, host: ArgumentsHost) {
    host.switchToHttp().getResponse<Response>().status(422).json(error.getResponse());
  }
}

class NoteRequest {
  @IsString()
  note: string;
}

class RenamedRequest {
  @Expose({ name: 'first_name' })
  @IsString()
  firstName: string;
}

class TaggedRequest {
  @Transform(({ value }) => (typeof value === 'string' ? value.split(',') : (value as unknown)))
  @IsString({ each: true })
  tags: string[];
}

class TagRequest {
  @IsArray()
  @IsString({ each: true })
  tags: string[];
}

class Place {
  @IsString()
  city: string;
}

class VisitRequest {
  @ValidateNested()
  @Type(() => Place)
  place: Place;

  @IsNumber()
  latitude: number;

  @IsOptional()
  @IsObject()
  notes?: object;
}

class Tenant {
  name: string;
}

const CurrentTenant = createParamDecorator((): Tenant => ({ name: 'moon' }));

class CountRequest {
  @ApiProperty()
  @IsInt()
  count: number;
}

class PageRequest {
  @Id('Number of the page', { default: 1 })
  @Between(1, 9)
  page: number;
}

class TextsRequest {
  @ApiProperty()
  @IsString()
  note: string;

  @Id('Game ID')
  game_id: number;
}

class GamesRequest {
  @IdList('Game IDs')
  game_ids: number[];
}

class SomeGamesRequest extends PartialType(GamesRequest) {
  @Id('User ID')
  user_id: number;
}

// This entity is in a file of another name than *.entity.ts.
@Entity('games')
class RatedGame {
  @PrimaryColumn('bigint')
  id: number;

  @Column('text')
  title: string;
}

@Controller('ratings')
class RatingsController {
  constructor(@InjectRepository(RatedGame) private readonly games: Repository<RatedGame>) {}

  @Get('games')
  @Public()
  rated(@Params() { game_ids }: GamesRequest) {
    return this.games.findBy({ id: In(game_ids) });
  }

  @Get('listed')
  @Public()
  @ApiOperation({ operationId: 'listGames' })
  listed(@Query() { game_ids }: GamesRequest) {
    return { game_ids };
  }

  @Get(['new', 'newest'])
  @Public()
  newest() {
    return {};
  }

  @All('any')
  @Public()
  any() {
    return {};
  }

  @Post('notes')
  @Public()
  note(@Body() request: NoteRequest) {
    return request;
  }

  @Get('file')
  @Public()
  file() {
    return new StreamableFile(Buffer.from('moon'), { type: 'text/plain' });
  }

  @Get('linked')
  @Public()
  @Header('Content-Type', 'application/ld+json')
  linked() {
    return { id: 1 };
  }

  @Get('logged')
  @Public()
  logged() {
    const logger = new Logger('Ratings');
    logger.log('one');
    logger.warn('two', { stars: 2, token: 'hidden' });
    logger.error('three', new Error('cause').stack);
    logger.error(new TypeError('four'));
    return {};
  }

  @Get('conflict')
  @Public()
  conflict() {
    throw new ConflictException({ errors: ['rated already'] });
  }

  @Get('coded')
  @Public()
  coded() {
    throw new HttpException({ code: 7, error: 'rated too often' }, 403);
  }

  @Get('objects')
  @Public()
  objects() {
    throw new HttpException({ code: 7 }, 403);
  }

  @Get('missing')
  @Public()
  missing() {
    return new StreamableFile(createReadStream('/nowhere')).setErrorHandler((_, res) => {
      const response = res as unknown as Response;
      response.status(404).json({ errors: ['invalid file'] });
    });
  }

  @Get('health')
  @Public()
  @UseFilters(HealthFilter)
  health() {
    // Terminus does the same.
    throw new ServiceUnavailableException({ status: 'error', details: { queue: { status: 'down' } } });
  }

  @Post('unprocessable')
  @Public()
  @UseFilters(UnprocessableFilter)
  unprocessable(@Body() { note }: NoteRequest) {
    return { note };
  }

  @Public()
  sum(values: number[]) {
    if (values.length === 0) throw new BadRequestException('no values');
    return values.reduce((a, b) => a + b);
  }

  @Scopes('profile:me')
  secret() {
    return 'secret';
  }

  @Get('unavailable')
  @Public()
  unavailable() {
    throw new ServiceUnavailableException('the moderation service at 10.0.0.7 is down');
  }

  @Get('unimplemented')
  @Public()
  unimplemented() {
    throw new NotImplementedException('secret plans');
  }

  @Get('shown')
  @Public()
  shown(@Query('all') all: boolean) {
    return { all };
  }

  @Get('found')
  @Public()
  found(@Query('word') word: string, @Query('page') page: number) {
    return { word, page };
  }

  @Post('visits')
  @Public()
  visit(@Body() request: VisitRequest) {
    return request;
  }

  @Post('price')
  @Public()
  price(@Body('price') price: number) {
    return { price };
  }

  @Get('tenant')
  @Public()
  tenant(@CurrentTenant() tenant: Tenant) {
    return tenant;
  }

  @Get('tagged')
  @Public()
  tagged(@Query() { tags }: TaggedRequest) {
    return { tags };
  }

  @Post('some')
  @Public()
  some(@Body() request: SomeGamesRequest) {
    return request;
  }

  @Post('words')
  @Public()
  @StreamedBody()
  words(@Body() words: string) {
    return { words };
  }

  @Post('renamed')
  @Public()
  renamed(@Body() request: RenamedRequest) {
    return request;
  }

  @Post('tagged')
  @Public()
  tag(@Body() { tags }: TagRequest) {
    return { tags };
  }

  @Post('photo')
  @Public()
  @StreamedBody()
  @UseInterceptors(FileInterceptor('photo'))
  photo(@UploadedFile() photo: { originalname: string; buffer: Buffer }, @Body() { note }: NoteRequest) {
    return { photo: photo.originalname, bytes: photo.buffer.length, note };
  }

  @Post('raw')
  @Public()
  raw(@RawBody() body: Buffer | undefined) {
    return { body: body ?? null };
  }

  @Post('strict')
  @Public()
  @UsePipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true }))
  strict(@Body() { note }: NoteRequest) {
    return { note };
  }

  @Post('counts')
  @Public()
  counts(@Body() { count }: CountRequest) {
    return { count };
  }

  @Get('of/:game_id')
  @Public()
  @ApiParam({ name: 'game_id', description: 'Game ID' })
  of(@Param('game_id', ParseIntPipe) game_id: number, @Query() query: PageRequest) {
    return { game_id, query };
  }

  @Post('texts')
  @Public()
  texts(@Body() request: TextsRequest) {
    return request;
  }

  @Get('filtered')
  @Scopes('profile:me')
  @UseFilters(StatusFilter)
  filtered() {
    return {};
  }

  @Get('mine')
  @Public()
  @UseGuards(AuthGuard('bearer'))
  mine(@Req() { user }: Request) {
    return { user_id: (user as Credential).user_id };
  }

  @Post()
  @Public()
  add() {
    return { id: 1 };
  }

  @Get('of-collections')
  @Scopes('collection:view')
  ofCollections(@CurrentCredential() { user_id }: Credential) {
    return { user_id };
  }
}

@Module({ imports: [TypeOrmModule.forFeature([RatedGame])], controllers: [RatingsController] })
class RatingsModule {}

@Controller('forgotten')
class ForgottenController {
  @Get()
  list() {
    return [];
  }
}

@Module({ controllers: [ForgottenController] })
class ForgottenModule {}

// @SignedIn() needs the guard of @Pages(), and this controller doesn't have it.
@Controller('unguarded')
class UnguardedController {
  @Get()
  @SignedIn()
  list() {
    return [];
  }
}

@Module({ controllers: [UnguardedController] })
class UnguardedModule {}

async function ask(url: string, path: string, authorization?: string) {
  const response = await fetch(url + path, { headers: authorization ? { authorization } : {} });
  return { status: response.status, body: (await response.json()) as unknown };
}

test("verifies credentials with Passport's AuthGuard as well as with @Scopes", async () => {
  const user = await make.user();
  const app = await openApp({}, { imports: [RatingsModule] });
  const url = await app.getUrl();
  const scoped = await make.key({ owner: user, scopes: ['profile:me'] });
  for (const path of ['/ratings/mine', '/ratings/of-collections']) {
    expect(await ask(url, path)).toEqual(failure(401, 'authentication required'));
    expect(await ask(url, path, 'Bearer wrong')).toEqual(failure(401, 'invalid key'));
    expect(await ask(url, path, `Bearer ${user.key}`)).toEqual({ status: 200, body: { user_id: user.id } });
    expect(await ask(url, path, user.key)).toEqual({ status: 200, body: { user_id: user.id } });
  }
  expect(await ask(url, '/ratings/mine', `Bearer ${scoped}`)).toMatchObject({ status: 200 });
  // passport-http-bearer alone would accept it.
  expect(await ask(url, `/ratings/mine?access_token=${user.key}`)).toEqual(
    failure(401, 'authentication required'),
  );
  expect(await ask(url, '/ratings/of-collections', `Bearer ${scoped}`)).toEqual(
    failure(403, 'api key does not permit `collection:view`'),
  );
});

test('keeps the status of an exception of 500 and above, and logs its text', async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const url = await app.getUrl();
  const before = logged.length;
  expect(await ask(url, '/ratings/unavailable')).toEqual(failure(503, 'service unavailable'));
  expect(await ask(url, '/ratings/unimplemented')).toEqual(failure(501, 'not implemented'));
  const lines = logged.slice(before).join('');
  for (const text of ['10.0.0.7', 'secret plans']) expect(lines).toContain(text);
});

test('describes a POST as 200, and bodies whose class has no @ApiProperty as any object', async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const { paths, components } = describeApi(app);
  expect(Object.keys(paths['/ratings']!.post!.responses)).toEqual(expect.not.arrayContaining(['201']));
  expect(paths['/ratings']!.post!.responses).toHaveProperty('200');
  expect(components?.schemas?.NoteRequest).not.toHaveProperty('additionalProperties');
});

test('describes the body of Nest’s @Body as a form too if each property can be read from one', async () => {
  const { paths } = describeApi(await openApp({}, { imports: [RatingsModule] }));
  const bodyTypes = (path: string) =>
    Object.keys((paths[path]!.post!.requestBody as { content: Record<string, unknown> }).content);
  expect(bodyTypes('/ratings/counts')).toEqual(['application/json']);
  expect(bodyTypes('/ratings/texts')).toEqual([
    'application/x-www-form-urlencoded',
    'application/json',
    'multipart/form-data',
  ]);
  expect(paths['/ratings/texts']!.post!.responses).toHaveProperty('415');
});

test('describes an operation with the ID of @ApiOperation()', async () => {
  const { paths } = describeApi(await openApp({}, { imports: [RatingsModule] }));
  expect(paths['/ratings/listed']!.get).toMatchObject({ operationId: 'listGames', summary: 'Listed' });
});

test('describes a handler with several paths or methods', async () => {
  const { paths } = describeApi(await openApp({}, { imports: [RatingsModule] }));
  const ids = ['/ratings/new', '/ratings/newest', '/ratings/any'].flatMap((path) =>
    Object.values(paths[path] as Record<string, { operationId: string }>).map(
      ({ operationId }) => operationId,
    ),
  );
  expect(ids).toEqual(
    expect.arrayContaining(['ratingsNewest', 'ratingsNewest2', 'ratingsAnyGet', 'ratingsAnyPost']),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

test('describes the parameters of Nest’s @Param() and @Query()', async () => {
  const { paths } = describeApi(await openApp({}, { imports: [RatingsModule] }));
  expect(paths['/ratings/of/{game_id}']!.get!.parameters).toMatchObject([
    {
      name: 'game_id',
      in: 'path',
      required: true,
      description: 'Game ID',
      example: 1,
      schema: { type: 'integer' },
    },
    {
      ...{ name: 'page', in: 'query', required: false, description: 'Number of the page', example: 1 },
      schema: { type: 'integer', minimum: 1, maximum: 9, default: 1 },
    },
  ]);
});

test('loads an entity of forFeature(), whatever the name of its file', async () => {
  const game = await make.game({ owner: await make.user(), title: 'Rated' });
  const url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  expect(await ask(url, `/ratings/games?game_ids=[${game.id}]`)).toEqual({
    status: 200,
    body: [{ id: game.id, title: 'Rated' }],
  });
});

test.each(['/ratings/games', '/ratings/listed'])(
  'describes a list of a query as one JSON text: %s',
  async (path) => {
    const { paths } = describeApi(await openApp({}, { imports: [RatingsModule] }));
    const [list] = paths[path]!.get!.parameters as [object];
    expect(list).not.toHaveProperty('schema');
    expect(list).toMatchObject({
      name: 'game_ids',
      in: 'query',
      content: { 'application/json': { schema: { type: 'array' } } },
    });
  },
);

test('reads a boolean of a query as everywhere in the API', async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const url = await app.getUrl();
  expect(await ask(url, '/ratings/shown?all=yes')).toEqual({ status: 200, body: { all: true } });
  expect(await ask(url, '/ratings/shown?all=x')).toEqual(failure(400, 'all must be a boolean'));
});

test('checks a single value like one of a request class', async () => {
  const url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  const found = (query: string) => ask(url, `/ratings/found?${query}`);
  expect(await found('word=moon&page=2')).toEqual({ status: 200, body: { word: 'moon', page: 2 } });
  expect(await found('word=a&word=b')).toEqual(failure(400, 'word must be given once'));
  expect(await found('page=1&page=2')).toEqual(failure(400, 'page must be given once'));
  expect(await found('word=%ff')).toEqual(failure(400, 'word must be valid UTF-8 text'));
  expect(await found('word=%00')).toEqual(failure(400, 'word must be valid Unicode text without NUL'));
});

test('reads and describes the parameters of a mapped class like those of the original', async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const body = describeApi(app).paths['/ratings/some']!.post!.requestBody as { content: object };
  expect(Object.keys(body.content)).toContain('application/x-www-form-urlencoded');
  const post = async (json: string) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${await app.getUrl()}/ratings/some`, {
      method: 'POST',
      body: json,
      headers,
    });
    return response.json() as unknown;
  };
  expect(await post('{"user_id":1,"game_ids":[2,9007199254740993]}')).toEqual({
    user_id: 1,
    game_ids: [2, 0],
  });
  expect(await post('{"user_id":1,"game_ids[]":2}')).toEqual({
    errors: ['game_ids must be one JSON array, such as [3,1,2]'],
  });
});

test("passes on a custom decorator's object without validating it", async () => {
  const url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  expect(await ask(url, '/ratings/tenant')).toEqual({ status: 200, body: { name: 'moon' } });
});

test('rounds fractions of JSON, but never integers, and removes unknown nested properties', async () => {
  const url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  const post = async (path: string, body: string) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method: 'POST', headers, body });
    return { status: response.status, body: (await response.json()) as unknown };
  };
  const visit = (latitude: string, notes = '{}') =>
    post('/ratings/visits', `{"place":{"city":"Rome","admin":true},"latitude":${latitude},"notes":${notes}}`);
  expect(await visit('52.520006599999998')).toEqual({
    status: 200,
    body: { place: { city: 'Rome' }, latitude: 52.520006599999998, notes: {} },
  });
  const problem = 'must not contain a number with too many digits';
  for (const number of ['9007199254740993', '9007199254740993.0', '1e400'])
    expect(await visit(number)).toEqual(failure(400, `latitude ${problem}`));
  expect(await visit('1', '{"parts":[{"id":9007199254740993}]}')).toEqual(failure(400, `notes ${problem}`));
  expect(await post('/ratings/price', '{"price":0.10000000000000001}')).toEqual({
    status: 200,
    body: { price: 0.1 },
  });
  expect(await post('/ratings/price', '{"price":9007199254740993}')).toEqual(
    failure(400, `price ${problem}`),
  );
});

test('keeps the media type of @Header()', async () => {
  const url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  const response = await fetch(`${url}/ratings/linked`);
  expect(response.headers.get('content-type')).toBe('application/ld+json');
  expect(await response.json()).toEqual({ id: 1 });
});

test('shows pages with a global ClassSerializerInterceptor', async () => {
  const providers = [{ provide: APP_INTERCEPTOR, useClass: ClassSerializerInterceptor }];
  const app = await openApp({}, { imports: [{ module: RatingsModule, providers }] });
  const response = await fetch(`${await app.getUrl()}/login`);
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(await response.text()).toContain('<!doctype html>');
});

test("logs what Nest's Logger gets: messages, objects, stacks and errors, but no secrets", async () => {
  const url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  const before = logged.length;
  await ask(url, '/ratings/logged');
  const lines = logged.slice(before).map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.filter(({ context }) => context === 'Ratings')).toMatchObject([
    { level: 'info', msg: 'one' },
    { level: 'warn', msg: 'two' },
    { level: 'warn', stars: 2, token: '[Redacted]' },
    { level: 'error', msg: 'three', stack: expect.stringContaining('Error: cause\n    at ') as string },
    { level: 'error', msg: 'four', err: { type: 'TypeError', message: 'four' } },
  ]);
});

test('sends a StreamableFile, and the errors of an HttpException, which filters catch', async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const url = await app.getUrl();
  const file = await fetch(`${url}/ratings/file`);
  expect([file.status, file.headers.get('content-type'), await file.text()]).toEqual([
    200,
    'text/plain',
    'moon',
  ]);
  expect(await ask(url, '/ratings/conflict')).toEqual(failure(409, 'rated already'));
  expect(await ask(url, '/ratings/filtered')).toEqual({
    status: 401,
    body: { caught: 'authentication required' },
  });
});

test('sends a text of an HttpException with an object', async () => {
  const url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  expect(await ask(url, '/ratings/coded')).toEqual(failure(403, 'rated too often'));
  expect(await ask(url, '/ratings/objects')).toEqual(failure(403, 'forbidden'));
});

test('handles messages of a microservice, and rejects those of handlers that need a credential', async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  // With `inheritAppConfig`, Nest calls message handlers in this way, with the global guards, pipes and filters.
  const controller = app.get(RatingsController);
  const call = (name: 'sum' | 'secret', data: unknown) =>
    app
      .get(ExternalContextCreator)
      .create(
        controller,
        controller[name] as never,
        name,
        undefined,
        undefined,
        undefined,
        undefined,
        undefined,
        'rpc',
      )(data) as Promise<unknown>;
  expect(await call('sum', [1, 2, 3])).toBe(6);
  const rejected = async (response: Promise<unknown>) =>
    expect(firstValueFrom((await response) as Observable<unknown>));
  await (await rejected(call('sum', []))).rejects.toEqual({ errors: ['no values'] });
  await (await rejected(call('secret', {}))).rejects.toEqual({ errors: ['authentication required'] });
});

test("returns this API's status for a POST declared with Nest's decorator", async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const response = await fetch(`${await app.getUrl()}/ratings`, { method: 'POST' });
  expect({ status: response.status, body: await response.json() }).toEqual({ status: 200, body: { id: 1 } });
});

test('the service does not start with a handler that does not declare its access', async () => {
  await expect(openApp({}, { imports: [ForgottenModule] })).rejects.toThrow(
    'Declare its access with @Scopes, @AnyCredential or @Public of src/auth/access/access.ts, or with @OperatorMay: ForgottenController.list (GET /forgotten).',
  );
});

// Nest's repl(AppModule) creates this context, too.
test('createApplicationContext(AppModule) uses the settings of the process and a connected database, without intervals', async () => {
  const user = await make.user();
  const environment = { ...process.env };
  Object.assign(process.env, { DATABASE_URL: databaseUrl(), API_KEY_PEPPER: PEPPER, LOG_LEVEL: 'silent' });
  try {
    const context = await NestFactory.createApplicationContext(AppModule, {
      logger: false,
      abortOnError: false,
    });
    const found = await context.get(EntityManager).findOneByOrFail(User, { id: user.id });
    const intervals = context.get(SchedulerRegistry).getIntervals();
    await context.close();
    expect([found.username, intervals]).toEqual([user.username, []]);
  } finally {
    process.env = environment;
  }
});

test.each<[string, (app: NestExpressApplication) => unknown]>([
  ['a global prefix', (app) => app.setGlobalPrefix('v2')],
  ['a default version', (app) => app.enableVersioning({ type: VersioningType.URI, defaultVersion: '2' })],
])('the service does not start with %s', async (_, configure) => {
  await expect(openApp({}, { configure })).rejects.toThrow('setGlobalPrefix and enableVersioning');
});

describe('what differs from Nest, as docs/contributing/request-pipeline.md lists it', () => {
  let url: string;
  beforeAll(async () => {
    url = await (await openApp({}, { imports: [RatingsModule] })).getUrl();
  });
  const post = async (path: string, json: unknown) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(json) });
    return response.json() as unknown;
  };

  test('lists are one value: repeated and bracketed names are rejected', async () => {
    expect(await ask(url, '/ratings/tagged?tags=a,b')).toEqual({ status: 200, body: { tags: ['a', 'b'] } });
    expect(await ask(url, '/ratings/tagged?tags=a&tags=b')).toEqual(failure(400, 'tags must be given once'));
    expect(await ask(url, '/ratings/tagged?tags[]=a')).toEqual(failure(400, 'tags must be a single value'));
    expect(await post('/ratings/tagged', { tags: ['a', 'b'] })).toEqual({ tags: ['a', 'b'] });
    expect(await post('/ratings/tagged', [{ tags: ['a'] }])).toHaveProperty('errors');
  });

  test('FileInterceptor works with @StreamedBody', async () => {
    const body = new FormData();
    body.append('photo', new Blob(['moon']), 'moon.png');
    body.append('note', 'Fine');
    const response = await fetch(`${url}/ratings/photo`, { method: 'POST', body });
    expect(await response.json()).toEqual({ photo: 'moon.png', bytes: 4, note: 'Fine' });
  });

  test('paths are case-sensitive and have no slash at the end', async () => {
    expect(await ask(url, '/ratings/shown')).toEqual({ status: 200, body: {} });
    for (const path of ['/ratings/shown/', '/Ratings/shown'])
      expect(await ask(url, path)).toEqual(failure(404, 'invalid api endpoint'));
  });

  test('middleware sees no body, and an own body parser works with @StreamedBody only', async () => {
    const bodies: unknown[] = [];
    const app = await openApp(
      {},
      {
        imports: [RatingsModule],
        configure: (one) => {
          one.use((req: Request, _res: Response, next: () => void) => {
            bodies.push(req.body);
            next();
          });
          one.useBodyParser('text');
        },
      },
    );
    const send = async (path: string) => {
      const headers = { 'content-type': 'text/plain' };
      const init = { method: 'POST', body: 'moon', headers };
      const response = await fetch((await app.getUrl()) + path, init);
      return { status: response.status, body: (await response.json()) as unknown };
    };
    expect(await send('/ratings/words')).toEqual({ status: 200, body: { words: 'moon' } });
    expect(await send('/ratings/notes')).toEqual(failure(415, 'unsupported media type'));
    expect(bodies).toEqual([undefined, undefined]);
  });

  test('the database is connected after the lifecycle hooks of the start', async () => {
    @Injectable()
    class Seeds implements OnApplicationBootstrap {
      constructor(@InjectRepository(RatedGame) private readonly games: Repository<RatedGame>) {}

      async onApplicationBootstrap() {
        await this.games.count();
      }
    }
    const imports = [{ module: RatingsModule, providers: [Seeds] }];
    await expect(openApp({}, { imports })).rejects.toThrow("The database isn't connected yet");
  });

  test('a different status for invalid parameters needs a filter', async () => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', body: '{}', headers };
    const response = await fetch(`${url}/ratings/unprocessable`, init);
    expect([response.status, await response.json()]).toEqual([422, { errors: ['note must be a string'] }]);
  });

  test('details of a 503 need a filter', async () => {
    expect(await ask(url, '/ratings/health')).toEqual({
      status: 503,
      body: { status: 'error', details: { queue: { status: 'down' } } },
    });
  });

  test('a StreamableFile of a missing file needs an error handler', async () => {
    expect(await ask(url, '/ratings/missing')).toEqual(failure(404, 'invalid file'));
  });

  test('names of @Expose are ignored', async () => {
    expect(await post('/ratings/renamed', { first_name: 'Ash', firstName: 'Bea' })).toEqual({
      firstName: 'Bea',
    });
  });

  test('@RawBody is empty', async () => {
    expect(await post('/ratings/raw', { note: 'x' })).toEqual({ body: null });
  });

  test('unknown parameters are removed before the pipes of a handler run', async () => {
    expect(await post('/ratings/strict', { note: 'x', other: 1 })).toEqual({ note: 'x' });
  });
});

test.each<[string, string | { path: string; method: RequestMethod }]>([
  ['paths', '{*path}'],
  ['routes', { path: '{*path}', method: RequestMethod.ALL }],
])('unknown paths and methods keep their errors with middleware for all %s', async (_, all) => {
  const seen: string[] = [];
  const errors: Record<string, Error> = { late: new NotFoundException('too late') };
  @Module({})
  class SeenModule implements NestModule {
    configure(consumer: MiddlewareConsumer) {
      consumer
        .apply((req: Request, _res: Response, next: (error?: unknown) => void) => {
          seen.push(req.originalUrl);
          next(errors[String(req.query.error)]);
        })
        .forRoutes(all);
    }
  }
  const url = await (await openApp({}, { imports: [RatingsModule, SeenModule] })).getUrl();
  const before = logged.length;
  expect(await ask(url, '/api/1/secret/nothing')).toEqual(failure(404, 'invalid api endpoint'));
  expect(logged.slice(before).join('')).toContain('"route":null');
  const response = await fetch(`${url}/ratings/file`, { method: 'DELETE' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  expect(await ask(url, '/ratings/linked')).toEqual({ status: 200, body: { id: 1 } });
  expect(await ask(url, '/ratings/linked?error=late')).toEqual(failure(404, 'too late'));
  expect(seen).toEqual([
    '/api/1/secret/nothing',
    '/ratings/file',
    '/ratings/linked',
    '/ratings/linked?error=late',
  ]);
});

test('the service does not start with a public route that RouterModule puts under /operator', async () => {
  const prefix = RouterModule.register([{ path: 'operator', module: RatingsModule }]);
  await expect(openApp({}, { imports: [RatingsModule, prefix] })).rejects.toThrow(
    'RatingsController.rated (GET /operator/ratings/games)',
  );
});

test('the service does not start with a handler that has a version', async () => {
  @Controller('versioned')
  class VersionedController {
    @Public()
    @Version('2')
    @Get()
    list() {
      return {};
    }
  }
  @Module({ controllers: [VersionedController] })
  class VersionedModule {}
  const configure = (app: NestExpressApplication) =>
    app.enableVersioning({ type: VersioningType.HEADER, header: 'Version' });
  await expect(openApp({}, { imports: [VersionedModule], configure })).rejects.toThrow(
    'enableVersioning is not supported: a version in VersionedController.list',
  );
});

test('the service does not start with a session handler on a controller without sessions', async () => {
  await expect(openApp({}, { imports: [UnguardedModule] })).rejects.toThrow(
    'Use @SignedIn on controllers with @Pages only: UnguardedController.list (GET /unguarded).',
  );
});

test('allows replacing a provider', async () => {
  class Nobody {
    findOwner = () => Promise.resolve({ id: 7, username: 'nobody' });
  }
  const user = await make.user();
  const app = await openApp(
    {},
    { override: (builder) => builder.overrideProvider(UsersService).useClass(Nobody) },
  );
  expect(await ask(await app.getUrl(), '/profile', `Bearer ${user.key}`)).toMatchObject({
    status: 200,
    body: { user: { id: 7 } },
  });
});

class UnvalidatedRequest {
  @IsString()
  name: string;

  note: string;
}

@Controller('unvalidated')
class UnvalidatedController {
  @Post()
  @Public()
  add(@Body() request: UnvalidatedRequest) {
    return request;
  }

  @Get()
  @Public()
  list(@Params() request: UnvalidatedRequest) {
    return request;
  }
}

@Module({ controllers: [UnvalidatedController] })
class UnvalidatedModule {}

class Address {
  @IsString()
  city: string;

  country: string;
}

class NestedRequest {
  @ValidateNested()
  @Type(() => Address)
  address: Address;
}

@Controller('nested')
class NestedController {
  @Post()
  @Public()
  add(@Body() request: NestedRequest) {
    return request;
  }
}

@Module({ controllers: [NestedController] })
class NestedModule {}

test('the service does not start with a request property that has no validation', async () => {
  await expect(openApp({}, { imports: [UnvalidatedModule] })).rejects.toThrow(
    'Put a validator of class-validator on each property of a request class: UnvalidatedRequest.note in ' +
      'UnvalidatedController.add; UnvalidatedRequest.note in UnvalidatedController.list.',
  );
  await expect(openApp({}, { imports: [NestedModule] })).rejects.toThrow(
    'NestedRequest.address.country in NestedController.add.',
  );
});
