import { applyDecorators } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import {
  getMetadataStorage,
  IsDefined,
  IsIn,
  IsOptional,
  Matches,
  registerDecorator,
  ValidateBy,
} from 'class-validator';
import { InvalidValue } from './input-values';
import type { RequestClass } from './params.decorator';
import {
  MAX_IDS,
  readAmount,
  readBoolean,
  readClearableText,
  readEmail,
  readEmailAddress,
  type Reader,
  readIdList,
  readIdOrIds,
  readInteger,
  readMark,
  readNonEmptyText,
  readNumber,
  readText,
  readTimestamp,
  readTitle,
  readTrimmedText,
} from './readers';

type Schema = ApiPropertyOptions;

/** The options of a parameter; one with a default is optional. */
interface Options {
  required?: boolean;
  default?: unknown;
  example?: unknown;
}

const READER = 'gamewharf:reader';

/** Set for properties whose values a reader checks. */
export interface ReaderFacts {
  isNullable: boolean;
  isList: boolean;
}

/** Reads the rules of class-validator, which `PartialType()` and the like copy. */
export const findReader = (request: RequestClass, name: string): ReaderFacts | undefined =>
  readRules(request)
    .filter(({ propertyName }) => propertyName === name)
    .map(({ context }) => (context as Record<string, ReaderFacts> | undefined)?.[READER])
    .find((description) => description !== undefined);

export const readRules = (request: RequestClass) =>
  getMetadataStorage().getTargetValidationMetadatas(request, '', false, false);

const KEYWORDS = 'gamewharf:keywords';

/** The OpenAPI keywords of a rule, which take precedence over those of the value type. */
const Keywords =
  (keywords: Schema): PropertyDecorator =>
  (prototype, name) => {
    const others = Reflect.getMetadata(KEYWORDS, prototype, name) as Schema | undefined;
    Reflect.defineMetadata(KEYWORDS, { ...others, ...keywords }, prototype, name);
    ApiProperty(keywords)(prototype, name);
  };

/** Creates the decorator for a value type. `null` counts as absent, unless the type is nullable. */
export const parameter =
  (read: Reader<unknown>, schema: Schema, { isNullable = false } = {}) =>
  (description: string, { required = true, ...more }: Options = {}): PropertyDecorator => {
    const isRequired = required && more.default === undefined;
    const context = {
      [READER]: { isNullable, isList: schema.type === 'array' || 'oneOf' in schema } satisfies ReaderFacts,
    };
    return applyDecorators(
      // `value` is a copy without the digits of a RoundedNumber.
      Transform(({ obj, key }) => {
        const original = (obj as Record<string, unknown>)[key];
        if (original === null) return isNullable ? null : undefined;
        return original instanceof InvalidValue ? original : read(original);
      }),
      isRequired ? IsDefined({ message: '$property is required', context }) : IsOptional({ context }),
      (prototype: object, name: string | symbol) =>
        ApiProperty({
          ...schema,
          ...more,
          ...(Reflect.getMetadata(KEYWORDS, prototype, name) as Schema | undefined),
          nullable: isNullable || undefined,
          description,
          required: isRequired,
        } as Schema)(prototype, name),
    );
  };

const ID = { type: 'integer', format: 'int64', minimum: 0 } as const;
const IDS = { type: 'array', items: { ...ID }, maxItems: MAX_IDS, uniqueItems: true } as const;

export const Id = parameter(readInteger, ID);
export const IdList = parameter(readIdList, IDS as Schema);
export const IdOrIds = parameter(readIdOrIds, { oneOf: [ID, { ...IDS, minItems: 1 }] } as Schema);
export const Flag = parameter(readBoolean, { type: 'boolean' });
/** A Flag that is also true if its value is empty. */
export const Mark = parameter(readMark, {
  oneOf: [{ type: 'boolean' }, { type: 'string', maxLength: 0 }],
} as Schema);
export const Text = parameter(readText, { type: 'string' });
export const NonEmptyText = parameter(readNonEmptyText, { type: 'string', minLength: 1 });
export const TrimmedText = parameter(readTrimmedText, { type: 'string', minLength: 1 });
// The format `email` would reject some email addresses that buyers have.
export const EmailAddress = parameter(readEmailAddress, {
  type: 'string',
  minLength: 3,
  pattern: '^\\s*[^\\s@]+@[^\\s@]+\\s*$',
});
/** An email address to look up: a space is read as `+`. */
export const LookupEmail = parameter(readEmail, { type: 'string', minLength: 1 });
export const Amount = parameter(readAmount, { ...ID, maximum: Number.MAX_SAFE_INTEGER });
/** A text that an empty value clears. */
export const ClearableText = parameter(readClearableText, { type: 'string' }, { isNullable: true });
export const Decimal = parameter(readNumber, { type: 'number' });
export const Timestamp = parameter(readTimestamp, { type: 'string', format: 'date-time' });

// The rules below are class-validator's, with this API's texts and their OpenAPI keywords.

export const Between = (minimum: number, maximum: number) =>
  applyDecorators(
    ValidateBy({
      name: 'between',
      validator: {
        validate: (value) => typeof value === 'number' && value >= minimum && value <= maximum,
        defaultMessage: () => `$property must be between ${minimum} and ${maximum}`,
      },
    }),
    Keywords({ minimum, maximum }),
  );

export const OneOf = (values: readonly string[], message = `$property must be one of ${values.join(', ')}`) =>
  applyDecorators(IsIn(values, { message }), Keywords({ enum: [...values] }));

export const Pattern = (pattern: RegExp, message: string) =>
  applyDecorators(Matches(pattern, { message }), Keywords({ pattern: pattern.source }));

// Code points have one or two units, so most texts need no counting.
const fits = (text: string, max: number) =>
  text.length <= max || (text.length <= 2 * max && [...text].length <= max);

/** Counts code points, as the database does; class-validator's MaxLength ignores variation selectors. */
export const MaxCharacters = (max: number) =>
  applyDecorators(
    ValidateBy({
      name: 'maxCharacters',
      validator: {
        validate: (value) => typeof value !== 'string' || fits(value, max),
        defaultMessage: () => `$property must be at most ${max} characters`,
      },
    }),
    Keywords({ maxLength: max }),
  );

const TitleText = parameter(readTitle, { type: 'string' });

export const Title = (...options: Parameters<typeof TitleText>) =>
  applyDecorators(
    TitleText(...options),
    Pattern(/^\P{Cc}*$/u, '$property must not contain control characters'),
  );

const CHOICE = 'gamewharf:choice';

/** The rule of a request class about several parameters, such as `exactly one of email, user_id is required`. */
export const findChoiceProblem = (request: object): string | undefined =>
  Reflect.getMetadata(CHOICE, request) as string | undefined;

/** Declares how many of these parameters of a request class are required. */
const choice =
  (quantity: string, isEnough: (count: number) => boolean) =>
  (...names: string[]): ClassDecorator =>
  (request) => {
    const rule = `${quantity} of ${names.join(', ')} is required`;
    Reflect.defineMetadata(CHOICE, rule, request);
    registerDecorator({
      name: 'choice',
      target: request,
      // class-validator has no rules for a whole class.
      propertyName: '',
      validator: {
        validate: (_, args) => {
          const values = args!.object as Record<string, unknown>;
          return isEnough(names.filter((name) => values[name] !== undefined).length);
        },
        defaultMessage: () => rule,
      },
    });
  };

export const ExactlyOneOf = choice('exactly one', (count) => count === 1);
export const AtLeastOneOf = choice('at least one', (count) => count > 0);

const strict = new WeakSet<object>();

/** Rejects unknown fields of a request class and of the objects in it. Other classes ignore them. */
export const OnlyKnownFields: ClassDecorator = (request) => void strict.add(request);

export const hasOnlyKnownFields = (request: RequestClass): boolean => strict.has(request);
