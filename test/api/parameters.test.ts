import { Body, Controller, Get, Module, Param, ParseIntPipe, Patch, Post, Query } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  IsArray,
  IsDefined,
  IsInt,
  IsOptional,
  IsString,
  IsUppercase,
  Max,
  Min,
  MinLength,
  ValidateNested,
} from 'class-validator';
import { Public } from '../../src/auth/access/access';
import { describeApi } from '../../src/platform/openapi/describe-api';
import { Between, Id, MaxCharacters, OneOf, Pattern, Text } from '../../src/platform/input/parameters';
import { Params } from '../../src/platform/input/params.decorator';
import { openApp, useStore } from '../support/app';

// A contributor's module with this API's decorators in any order and class-validator's own.
class TypeFirst {
  @Id('A number', { required: false })
  @Between(2, 5)
  number?: number;

  @Text('A text', { required: false })
  @MaxCharacters(3)
  @OneOf(['a', 'b', 'abcd'])
  text?: string;
}

class RulesFirst {
  @Between(2, 5)
  @Id('A number', { required: false })
  number?: number;

  @OneOf(['a', 'b', 'abcd'])
  @MaxCharacters(3)
  @Text('A text', { required: false })
  text?: string;
}

class OtherRules extends TypeFirst {
  @IsUppercase()
  @Text('In capitals', { required: false })
  capitals?: string;

  @Pattern(/^x/, '$property must begin with x')
  @Text('Anything with an x', { default: 'xy' })
  letter: string = 'xy';

  @Min(1)
  @Id('From 1', { required: false })
  from?: number;

  @MaxCharacters(2)
  @Text('Two', { required: false })
  two?: string;
}

class Demanding {
  @IsDefined()
  @IsString()
  text: string;
}

class Author {
  @IsString()
  name: string;
}

class CreateReviewDto {
  @IsString()
  @MinLength(2)
  text: string;

  @IsInt()
  @Min(1)
  @Max(5)
  stars: number;

  @IsOptional()
  @IsArray()
  @IsString({ each: true })
  tags?: string[];

  @IsOptional()
  @ValidateNested()
  @Type(() => Author)
  author?: Author;
}

class FindReviewsDto {
  @IsOptional()
  @Type(() => Number)
  @IsInt()
  stars?: number;
}

const AnyObject = () => ApiOkResponse({ schema: { type: 'object' } });

@Controller('ordered')
class OrderedController {
  @Get('type-first')
  @Public()
  @AnyObject()
  typeFirst(@Params() request: TypeFirst): object {
    return request;
  }

  @Get('rules-first')
  @Public()
  @AnyObject()
  rulesFirst(@Params() request: RulesFirst): object {
    return request;
  }

  @Get('demanding')
  @Public()
  @AnyObject()
  demanding(@Params() request: Demanding): object {
    return request;
  }

  @Get('others')
  @Public()
  @AnyObject()
  others(@Params() request: OtherRules): object {
    return request;
  }
}

/** Uses only what Nest's documentation describes. */
@Controller('reviews')
class ReviewsController {
  @Post()
  @Public()
  @AnyObject()
  create(@Body() body: CreateReviewDto): object {
    return { body, isInstance: body instanceof CreateReviewDto };
  }

  @Get()
  @Public()
  @AnyObject()
  findAll(@Query() query: FindReviewsDto, @Query('sort') sort?: string): object {
    return { query, sort };
  }

  @Get(':id')
  @Public()
  @AnyObject()
  findOne(@Param('id', ParseIntPipe) id: number): object {
    return { id };
  }

  @Patch(':id')
  @Public()
  @AnyObject()
  update(@Param('id') id: string, @Body('text') text: string): object {
    return { id, text };
  }
}

@Module({ controllers: [OrderedController, ReviewsController] })
class ContributedModule {}

useStore();

let base: string;
let paths: Record<string, { get: { parameters: { schema: object }[] } }>;
beforeAll(async () => {
  const app = await openApp({}, { imports: [ContributedModule] });
  base = await app.getUrl();
  ({ paths } = JSON.parse(JSON.stringify(describeApi(app))) as { paths: typeof paths });
});

async function ask(path: string, init?: RequestInit): Promise<unknown> {
  const body = (await (await fetch(base + path, init)).json()) as { errors?: string[] };
  return body.errors ?? body;
}
const ordered = (path: string, query: Record<string, string>) =>
  ask(`/ordered/${path}?${new URLSearchParams(query)}`);

const schemas = (path: string) => paths[`/ordered/${path}`]!.get.parameters.map(({ schema }) => schema);

test.each(['type-first', 'rules-first'])('%s: ignores the order of decorators', async (path) => {
  expect(schemas(path)).toEqual([
    { type: 'integer', format: 'int64', minimum: 2, maximum: 5 },
    { type: 'string', maxLength: 3, enum: ['a', 'b', 'abcd'] },
  ]);
  expect(await ordered(path, { number: '3', text: 'a' })).toEqual({ number: 3, text: 'a' });
  expect(await ordered(path, {})).toEqual({});
  expect(await ordered(path, { number: '6', text: 'c' })).toEqual([
    'number must be between 2 and 5',
    'text must be one of a, b, abcd',
  ]);
  expect(await ordered(path, { number: '1', text: 'abcd' })).toEqual([
    'number must be between 2 and 5',
    'text must be at most 3 characters',
  ]);
  expect(await ordered(path, { number: 'x', text: 'a' })).toEqual(['number must be an integer']);
});

test('applies rules of a parent class and lists problems in the order of declaration', async () => {
  expect(await ordered('others', { from: '0', number: '9', capitals: 'small', letter: 'y' })).toEqual([
    'number must be between 2 and 5',
    'capitals must be uppercase',
    'letter must begin with x',
    'from must not be less than 1',
  ]);
  expect(await ordered('others', {})).toEqual({ letter: 'xy' });
});

test("applies class-validator's own decorators to @Params", async () => {
  expect(await ordered('demanding', {})).toEqual(['text should not be null or undefined']);
  expect(await ordered('demanding', { text: '' })).toEqual({ text: '' });
});

test('counts characters as code points, including variation selectors', async () => {
  expect(await ordered('others', { two: '🎲🎲' })).toEqual({ two: '🎲🎲', letter: 'xy' });
  for (const two of ['a\ufe0fb', '🎲🎲🎲', 'e\u0301e'])
    expect(await ordered('others', { two })).toEqual(['two must be at most 2 characters']);
});

describe("Nest's own decorators", () => {
  const post = (body: string, type = 'application/json') =>
    ask('/reviews', { method: 'POST', headers: { 'content-type': type }, body });

  test('passes @Body() as an instance of its class, without unknown properties', async () => {
    const body = { text: 'Fine', stars: 4, tags: ['a'], author: { name: 'A' } };
    expect(await post(JSON.stringify({ ...body, other: 1 }))).toEqual({ body, isInstance: true });
  });

  test('lists every problem of @Body() in the error envelope', async () => {
    expect(await post('{"text":"x","stars":6,"author":{"name":1}}')).toEqual([
      'text must be longer than or equal to 2 characters',
      'stars must not be greater than 5',
      'author.name must be a string',
    ]);
    expect(await ask('/reviews', { method: 'POST' })).toContain('text must be a string');
  });

  test.each([
    ['text=a&text=b', 'text must be given once'],
    ['text[x]=a', 'text must be a single value'],
    ['text=%ff', 'text must be valid UTF-8 text'],
    ['text=a%00', 'text must be valid Unicode text without NUL'],
  ])('validates @Body() as strictly as every route: %s', async (body, problem) => {
    expect(await post(body, 'application/x-www-form-urlencoded')).toContain(problem);
  });

  test.each([
    ['"text":"ab","stars":9007199254740993', 'stars must not contain a number with too many digits'],
    ['"text":"a","text":"b","stars":1', 'text must be given once'],
    ['"text":"a\\ud800","stars":1', 'text must be valid Unicode text without NUL'],
    ['"text":"ab","stars":1,"tags":["a\\u0000"]', 'tags must be valid Unicode text without NUL'],
  ])('validates @Body() of JSON as strictly as every route: {%s}', async (members, problem) => {
    expect(await post(`{${members}}`)).toContain(problem);
  });

  test('supports @Query() with a class and with a name', async () => {
    expect(await ask('/reviews?stars=4&sort=newest&other=1')).toEqual({
      query: { stars: 4 },
      sort: 'newest',
    });
    expect(await ask('/reviews?stars=x')).toEqual(['stars must be an integer number']);
    expect(await ask('/reviews?stars=1&stars=2')).toEqual(['stars must be given once']);
  });

  test('reads only digits with @Param() and ParseIntPipe', async () => {
    expect(await ask('/reviews/12')).toEqual({ id: 12 });
    expect(await ask('/reviews/9007199254740993')).toEqual({ id: 0 });
    expect(await ask('/reviews/1.5')).toEqual(['Validation failed (numeric string is expected)']);
    for (const id of ['0x10', '12%20', 'abc', '%2b5', '9223372036854775808'])
      expect(await ask(`/reviews/${id}`)).toEqual([
        expect.stringMatching(/^id must be an? (integer|number)$/),
      ]);
  });

  test('supports @Body() with a name, and @Patch()', async () => {
    const init = { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{"text":"New"}' };
    expect(await ask('/reviews/7', init)).toEqual({ id: '7', text: 'New' });
  });
});
