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
import { setImmediate } from 'node:timers/promises';
import { compileRules } from '../../src/platform/input/compiled-rules';
import { ExactlyOneOf, readRules } from '../../src/platform/input/parameters';

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

class Unavailable {
  number: unknown;
}
const failing = { name: 'failing', validate: () => Promise.reject(new Error('unavailable')) };
registerDecorator({ target: Unavailable, propertyName: 'number', validator: failing });

class Asynchronous {
  number: unknown;
}
registerDecorator({ target: Asynchronous, propertyName: 'number', validator: failing, async: true });

class WithDefault {
  @IsInt()
  number: unknown = 1;

  undeclared = 2;
}

class WithoutRules {}

// After an upgrade of class-validator, `isCompiled` must exclude rules with an option that it doesn't know.
const RULE_FIELDS = [
  ...['always', 'constraintCls', 'constraints', 'context', 'each', 'groups', 'message', 'name'],
  ...['propertyName', 'target', 'type', 'validateIf', 'validationTypeOptions'],
];

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
  for (const request of [OfLists, OfObjects, InGroups, WithCondition, Asynchronous, WithoutRules])
    expect(compileRules(request)).toBeUndefined();
});

test('conditions decide which rules apply', () => {
  const isValid = compileRules(OnCondition)!;
  expect(isValid({ number: 0 })).toBe(true);
  expect(isValid({ number: 2 })).toBe(true);
  expect(isValid({ number: 'a' })).toBe(false);
});

test('a rejected promise of a validator is left to class-validator', async () => {
  const unhandled = jest.fn();
  process.on('unhandledRejection', unhandled);
  expect(compileRules(Unavailable)!({ number: 1 })).toBe(false);
  await setImmediate();
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test('every field of a rule is known', () => {
  const [rule] = readRules(WithCondition);
  expect(Object.keys(rule!).toSorted()).toEqual(RULE_FIELDS);
});

test('class-validator decides about properties without rules', () => {
  expect(compileRules(WithDefault)!({ ...new WithDefault() })).toBe(false);
  expect(compileRules(WithDefault)!({ number: 1 })).toBe(true);
});
