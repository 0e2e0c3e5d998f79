import {
  Allow,
  IsDefined,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
  Min,
  registerDecorator,
  validate,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import fc from 'fast-check';
import { compileRules } from '../../src/platform/input/compiled-rules';
import { ExactlyOneOf } from '../../src/platform/input/parameters';

class Base {
  @IsOptional()
  @IsInt()
  @Min(2)
  number?: unknown;
}

@ExactlyOneOf('text', 'choice')
class Plain extends Base {
  @IsOptional()
  @Matches(/^a/)
  @MaxLength(3)
  text?: unknown;

  @IsOptional()
  @IsIn(['a', 1])
  choice?: unknown;

  @IsDefined()
  required?: unknown;

  @Allow()
  anything?: unknown;
}

class OfLists {
  @IsString({ each: true })
  texts: unknown;
}

class OfObjects {
  @ValidateNested()
  inner: unknown;
}

class InGroups {
  @IsInt({ groups: ['later'] })
  number: unknown;
}

class WithCondition {
  @IsInt({ validateIf: () => false })
  number: unknown;
}

class OnCondition {
  @ValidateIf((request: OnCondition) => request.number !== 0)
  @IsInt()
  number: unknown;
}

class Promised {
  number: unknown;
}
registerDecorator({
  name: 'promised',
  target: Promised,
  propertyName: 'number',
  validator: { validate: () => Promise.resolve(false) },
});

class WithDefault {
  @IsInt()
  number: unknown = 1;

  undeclared = 2;
}

class WithoutRules {}

const VALUES = fc.constantFrom<unknown>(undefined, null, 'a', 'abcd', 'b', '', 0, 1, 2, 2.5, [], {});

test('compiled rules accept exactly the requests that class-validator accepts', async () => {
  const isValid = compileRules(Plain)!;
  const names = ['number', 'text', 'choice', 'required', 'anything', 'undeclared'];
  const values = fc.dictionary(fc.constantFrom(...names), VALUES, { noNullPrototype: true });
  const seen = new Set<boolean>();
  await fc.assert(
    fc.asyncProperty(values, async (given) => {
      const request = Object.assign(new Plain(), given) as Plain & Record<string, unknown>;
      const accepted = isValid(request);
      const errors = await validate(request, { whitelist: true, forbidNonWhitelisted: true });
      expect(accepted).toBe(errors.length === 0);
      seen.add(accepted);
    }),
    { numRuns: 2000 },
  );
  expect(seen).toEqual(new Set([true, false]));
});

test('class-validator decides about rules that are not compiled', () => {
  for (const request of [OfLists, OfObjects, InGroups, WithCondition, WithoutRules])
    expect(compileRules(request)).toBeUndefined();
});

test('conditions decide which rules apply', () => {
  const isValid = compileRules(OnCondition)!;
  expect(isValid({ number: 0 })).toBe(true);
  expect(isValid({ number: 2 })).toBe(true);
  expect(isValid({ number: 'a' })).toBe(false);
});

test('class-validator decides about promises and properties without rules', () => {
  expect(compileRules(Promised)!({ number: 1 })).toBe(false);
  expect(compileRules(WithDefault)!({ ...new WithDefault() })).toBe(false);
  expect(compileRules(WithDefault)!({ number: 1 })).toBe(true);
});
