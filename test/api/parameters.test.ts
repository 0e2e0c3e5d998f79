import { Controller, Get, Module } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { IsDefined, IsIn, IsUppercase, Matches, Max, Min } from 'class-validator';
import { Public } from '../../src/auth/access';
import { describeApi } from '../../src/platform/openapi/describe-api';
import { IntegerParameter, TextParameter } from '../../src/platform/http/parameters';
import { Parameters } from '../../src/platform/http/read-parameters';
import { MaxCharacters } from '../../src/platform/http/parameters';
import { openApp, useStore } from '../support/store';

// A module of somebody else's, who puts class-validator's decorators wherever they like.
class KindsFirst {
  @IntegerParameter('A number')
  @Min(2)
  @Max(5)
  number?: number;

  @TextParameter('A text')
  @MaxCharacters(3)
  @IsIn(['a', 'b', 'abcd'])
  text?: string;
}

class RulesFirst {
  @Max(5)
  @Min(2)
  @IntegerParameter('A number')
  number?: number;

  @IsIn(['a', 'b', 'abcd'])
  @MaxCharacters(3)
  @TextParameter('A text')
  text?: string;
}

class OtherRules extends KindsFirst {
  @IsUppercase()
  @TextParameter('In capitals')
  capitals?: string;

  @Matches(/^x/, { message: '$property must begin with x' })
  @TextParameter('Anything with an x')
  letter: string = 'y';

  @Min(1)
  @IntegerParameter('From 1')
  from?: number;

  @MaxCharacters(2)
  @TextParameter('Two')
  two?: string;
}

class Demanding {
  @IsDefined()
  @TextParameter("Required in class-validator's way")
  text: string;
}

@Controller('ordered')
class OrderedController {
  @Get('kinds-first')
  @Public()
  @ApiOkResponse({ schema: { type: 'object' } })
  kindsFirst(@Parameters() request: KindsFirst): object {
    return request;
  }

  @Get('rules-first')
  @Public()
  @ApiOkResponse({ schema: { type: 'object' } })
  rulesFirst(@Parameters() request: RulesFirst): object {
    return request;
  }

  @Get('demanding')
  @Public()
  @ApiOkResponse({ schema: { type: 'object' } })
  demanding(@Parameters() request: Demanding): object {
    return request;
  }

  @Get('others')
  @Public()
  @ApiOkResponse({ schema: { type: 'object' } })
  others(@Parameters() request: OtherRules): object {
    return request;
  }
}

@Module({ controllers: [OrderedController] })
class OrderedModule {}

useStore();

let base: string;
let paths: Record<string, { get: { parameters: { schema: object }[] } }>;
beforeAll(async () => {
  const app = await openApp({}, { imports: [OrderedModule] });
  base = await app.getUrl();
  ({ paths } = JSON.parse(JSON.stringify(describeApi(app))) as { paths: typeof paths });
});

async function ask(path: string, query: Record<string, string>) {
  const answer = await fetch(`${base}/ordered/${path}?${new URLSearchParams(query)}`);
  const body = (await answer.json()) as { errors?: string[] };
  return body.errors ?? body;
}

const schemas = (path: string) => paths[`/ordered/${path}`]!.get.parameters.map(({ schema }) => schema);

test.each(['kinds-first', 'rules-first'])('%s: the order of decorators does not matter', async (path) => {
  expect(schemas(path)).toEqual([
    { type: 'integer', format: 'int64', minimum: 2, maximum: 5 },
    { type: 'string', maxLength: 3, enum: ['a', 'b', 'abcd'] },
  ]);
  expect(await ask(path, { number: '3', text: 'a' })).toEqual({ number: 3, text: 'a' });
  expect(await ask(path, {})).toEqual({});
  expect(await ask(path, { number: '6', text: 'c' })).toEqual([
    'number must be between 2 and 5',
    'text must be one of a, b, abcd',
  ]);
  expect(await ask(path, { number: '1', text: 'abcd' })).toEqual([
    'number must be between 2 and 5',
    'text must be at most 3 characters',
  ]);
  expect(await ask(path, { number: 'x', text: 'a' })).toEqual(['number must be an integer']);
});

test('rules of a parent class count, as do decorators that this service has no words for', async () => {
  expect(await ask('others', { number: '9', capitals: 'small', letter: 'y', from: '0' })).toEqual([
    'capitals must be uppercase',
    'letter must begin with x',
    'from must be at least 1',
    'number must be between 2 and 5',
  ]);
  // What a class says itself is not doubted while nothing is given that has a rule.
  expect(await ask('others', {})).toEqual({ letter: 'y' });
});

test('what class-validator misses is missed where nothing is given, too', async () => {
  expect(await ask('demanding', {})).toEqual(['text should not be null or undefined']);
  expect(await ask('demanding', { text: '' })).toEqual({ text: '' });
});

test('characters are code points, variation selectors included', async () => {
  expect(await ask('others', { two: '🎲🎲', letter: 'x' })).toEqual({ two: '🎲🎲', letter: 'x' });
  for (const two of ['a\ufe0fb', '🎲🎲🎲', 'e\u0301e'])
    expect(await ask('others', { two, letter: 'x' })).toEqual(['two must be at most 2 characters']);
});
