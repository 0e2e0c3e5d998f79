import {
  type ArgumentsHost,
  Body,
  Catch,
  ConflictException,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  Module,
  NotImplementedException,
  Post,
  Query,
  Req,
  ServiceUnavailableException,
  StreamableFile,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { AuthGuard } from '@nestjs/passport';
import { Type } from 'class-transformer';
import { IsString, ValidateNested } from 'class-validator';
import type { Request, Response } from 'express';
import { Public, Scopes, SignedIn } from '../../src/auth/access';
import { CurrentCredential, type Credential } from '../../src/auth/credential';
import { Form } from '../../src/platform/http/form';
import { ParameterPipe } from '../../src/platform/http/parameter.pipe';
import { Params } from '../../src/platform/http/params.decorator';
import { describeApi } from '../../src/platform/openapi/describe-api';
import { UsersService } from '../../src/users/users.service';
import { failure, logged, make, openApp, theApp, useStore } from '../support/store';

// A module that an integrator adds to the service.
useStore();

@Catch(HttpException)
class StatusFilter implements ExceptionFilter {
  catch(error: HttpException, host: ArgumentsHost) {
    host.switchToHttp().getResponse<Response>().status(error.getStatus()).json({ caught: error.message });
  }
}

class NoteRequest {
  @IsString()
  note: string;
}

@Controller('ratings')
class RatingsController {
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

  @Get('conflict')
  @Public()
  conflict() {
    throw new ConflictException({ errors: ['rated already'] });
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

@Module({ controllers: [RatingsController] })
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

// @SignedIn() needs the guard of @Pages(), which this controller lacks.
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
  expect(await ask(url, '/ratings/mine')).toEqual(failure(401, 'Unauthorized'));
  expect(await ask(url, '/ratings/of-collections')).toEqual(failure(401, 'authentication required'));
  for (const path of ['/ratings/mine', '/ratings/of-collections']) {
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

test('reads a boolean of a query as everywhere in the API', async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const url = await app.getUrl();
  expect(await ask(url, '/ratings/shown?all=yes')).toEqual({ status: 200, body: { all: true } });
  expect(await ask(url, '/ratings/shown?all=x')).toEqual(failure(400, 'all must be a boolean'));
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

test("returns this API's status for a POST declared with Nest's decorator", async () => {
  const app = await openApp({}, { imports: [RatingsModule] });
  const response = await fetch(`${await app.getUrl()}/ratings`, { method: 'POST' });
  expect({ status: response.status, body: await response.json() }).toEqual({ status: 200, body: { id: 1 } });
});

test('the service does not start with a handler that does not declare its access', async () => {
  await expect(openApp({}, { imports: [ForgottenModule] })).rejects.toThrow(
    'Declare its access with @Scopes, @AnyCredential or @Public of src/auth/access.ts, or with @OperatorMay: ForgottenController.list (GET /forgotten).',
  );
});

test('the service does not start with a session handler on a controller without sessions', async () => {
  await expect(openApp({}, { imports: [UnguardedModule] })).rejects.toThrow(
    'Use @SignedIn on controllers with @Pages only: UnguardedController.list (GET /unguarded).',
  );
});

test("passes on a custom decorator's object if TypeScript emitted no class for it", async () => {
  const form = new Form({ name: 'moon' });
  const pipe = new ParameterPipe(theApp().get(ModuleRef));
  expect(await pipe.transform(form, { type: 'custom', metatype: Function })).toBe(form);
});

test('allows replacing a provider', async () => {
  class Nobody {
    ownerOf = () => Promise.resolve({ id: 7, username: 'nobody' });
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
