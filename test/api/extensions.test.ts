import { Body, Controller, Get, Module, Post, Req, UseGuards } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import { IsString } from 'class-validator';
import type { Request } from 'express';
import { Public, Scopes, SignedIn } from '../../src/auth/access';
import { CurrentCredential, type Credential } from '../../src/auth/credential';
import { Params } from '../../src/platform/http/params.decorator';
import { UsersService } from '../../src/users/users.service';
import { failure, make, openApp, useStore } from '../support/store';

// A module that an integrator adds to the service.
useStore();

@Controller('reviews')
class ReviewsController {
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

@Module({ controllers: [ReviewsController] })
class ReviewsModule {}

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
  const app = await openApp({}, { imports: [ReviewsModule] });
  const url = await app.getUrl();
  const scoped = await make.key({ owner: user, scopes: ['profile:me'] });
  expect(await ask(url, '/reviews/mine')).toEqual(failure(401, 'Unauthorized'));
  expect(await ask(url, '/reviews/of-collections')).toEqual(failure(401, 'authentication required'));
  for (const path of ['/reviews/mine', '/reviews/of-collections']) {
    expect(await ask(url, path, 'Bearer wrong')).toEqual(failure(401, 'invalid key'));
    expect(await ask(url, path, `Bearer ${user.key}`)).toEqual({ status: 200, body: { user_id: user.id } });
    expect(await ask(url, path, user.key)).toEqual({ status: 200, body: { user_id: user.id } });
  }
  expect(await ask(url, '/reviews/mine', `Bearer ${scoped}`)).toMatchObject({ status: 200 });
  expect(await ask(url, '/reviews/of-collections', `Bearer ${scoped}`)).toEqual(
    failure(403, 'api key does not permit `collection:view`'),
  );
});

test("returns this API's status for a POST declared with Nest's decorator", async () => {
  const app = await openApp({}, { imports: [ReviewsModule] });
  const response = await fetch(`${await app.getUrl()}/reviews`, { method: 'POST' });
  expect({ status: response.status, body: await response.json() }).toEqual({ status: 200, body: { id: 1 } });
});

test('the service does not start with a handler that does not declare its access', async () => {
  await expect(openApp({}, { imports: [ForgottenModule] })).rejects.toThrow(
    'Declare its access with @Scopes, @OperatorMay or @Public: ForgottenController.list (GET /forgotten).',
  );
});

test('the service does not start with a session handler on a controller without sessions', async () => {
  await expect(openApp({}, { imports: [UnguardedModule] })).rejects.toThrow(
    'Use @SignedIn on controllers with @Pages only: UnguardedController.list (GET /unguarded).',
  );
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

test('the service does not start with a request property that has no validation', async () => {
  await expect(openApp({}, { imports: [UnvalidatedModule] })).rejects.toThrow(
    'Put a validator of class-validator on each property of a request class: UnvalidatedRequest.note in ' +
      'UnvalidatedController.add; UnvalidatedRequest.note in UnvalidatedController.list.',
  );
});
