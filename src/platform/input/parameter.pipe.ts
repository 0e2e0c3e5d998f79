import { type ArgumentMetadata, Injectable, ValidationPipe } from '@nestjs/common';
import type { ValidationError, ValidatorOptions } from 'class-validator';
import { ApiError, badRequest } from '../errors/api-error';
import { InvalidValue, NOT_UTF8, Repeated } from './input-values';
import { compileRules } from './compiled-rules';
import { type ReaderFacts, findReader, hasOnlyKnownFields, readRules } from './parameters';
import { PARAMETERS, type RequestClass } from './params.decorator';
import { RoundedNumber } from './json';
import { isStorable, notStorable, readBoolean, readInteger, readNumber } from './readers';

type Values = Record<string, unknown>;
/** The properties of a request class; undefined: declared with class-validator only. */
type Properties = Map<string, ReaderFacts | undefined>;

/** What a request class declares. */
interface Declared {
  properties: Properties;
  isStrict: boolean;
  isValid: ReturnType<typeof compileRules>;
}

const PRIMITIVES = new Map<unknown, (text: string) => unknown>([
  [Boolean, readBoolean],
  [Number, (text) => (/^\d+$/.test(text) ? readInteger(text) : readNumber(text))],
]);

/** Nest's ValidationPipe for this API's parameters: strict about their types, and with all problems listed. */
@Injectable()
export class ParameterPipe extends ValidationPipe {
  private readonly declared = new Map<RequestClass, Declared>();

  constructor() {
    super({
      transform: true,
      whitelist: true,
      validateCustomDecorators: true,
      transformOptions: { exposeUnsetFields: false },
      exceptionFactory: (errors) => new ApiError(400, errors.flatMap(collectMessages)),
    });
  }

  override transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const metatype = metadata.metatype as RequestClass | undefined;
    if (!metatype || !this.toValidate(metadata)) return super.transform(value, metadata) as Promise<unknown>;
    return super.transform(
      this.collectDeclared((value ?? {}) as Values, metatype),
      metadata,
    ) as Promise<unknown>;
  }

  /** Skips the values of custom decorators except `@Params()`, because clients don't send them. */
  protected override toValidate(metadata: ArgumentMetadata): boolean {
    const isOwn = metadata.type === 'custom' && (metadata.data as unknown) !== PARAMETERS;
    return !isOwn && super.toValidate(metadata);
  }

  /**
   * Replaces Nest's conversion, which would read `0x10` as 16, an empty text as 0, 9007199254740993 as
   * another number, and `yes` as false.
   */
  protected override transformPrimitive(input: unknown, metadata: ArgumentMetadata): unknown {
    const { type, metatype, data } = metadata;
    if (type === 'custom') return input;
    // A text in a path that can't be stored belongs to no row: the handler responds with its 404.
    const value = type === 'param' ? input : checked(input, undefined);
    const read = typeof value === 'string' ? PRIMITIVES.get(metatype) : undefined;
    const primitive = read ? read(value as string) : value;
    if (primitive instanceof InvalidValue) throw badRequest(`${data ?? 'the value'} ${primitive.problem}`);
    return read ? primitive : (super.transformPrimitive(primitive, metadata) as unknown);
  }

  protected override validate(request: Values, options?: ValidatorOptions): Promise<ValidationError[]> {
    const { isValid, isStrict } = this.read(request.constructor as RequestClass);
    if (isValid?.(request)) return Promise.resolve([]);
    return this.findErrors(request, isStrict ? { ...options, forbidNonWhitelisted: true } : options);
  }

  /**
   * An invalid value has no other errors. Errors are in the order of declaration, followed by those about
   * several parameters.
   */
  private async findErrors(request: Values, options?: ValidatorOptions): Promise<ValidationError[]> {
    const names = Object.keys(request);
    if (names.some((name) => request[name] instanceof Promise)) await awaitPromises(request, names);
    const found = await super.validate(request, options);
    const invalid = names.filter((name) => request[name] instanceof InvalidValue);
    if (found.length === 0 && invalid.length === 0) return found;
    const errors = new Map(found.map((error) => [error.property, error]));
    for (const property of invalid) {
      const { problem } = request[property] as InvalidValue;
      errors.set(property, { property, constraints: { value: `${property} ${problem}` } });
    }
    return [...new Set([...names, ...errors.keys()])].flatMap((name) => errors.get(name) ?? []);
  }

  /** The declared parameters, and the unknown ones if they are rejected. */
  private collectDeclared(values: Values, metatype: RequestClass): Values {
    const { properties, isStrict } = this.read(metatype);
    const declared: Values = isStrict ? { ...values } : {};
    const bracketed = bracketedIn(values);
    for (const [name, reader] of properties) {
      const isBracketed = bracketed?.has(name);
      if (!isBracketed && !Object.hasOwn(values, name)) continue;
      const value = isBracketed ? bracketedValue(reader) : checked(values[name], reader);
      // Without a reader, class-transformer would convert the InvalidValue.
      if (!reader && value instanceof InvalidValue) throw badRequest(`${name} ${value.problem}`);
      declared[name] = value;
    }
    return declared;
  }

  private read(metatype: RequestClass): Declared {
    let declared = this.declared.get(metatype);
    if (!declared) {
      const names = readRules(metatype)
        .map(({ propertyName }) => propertyName)
        .filter((name) => name !== '');
      declared = {
        properties: new Map(names.map((name) => [name, findReader(metatype, name)])),
        isStrict: hasOnlyKnownFields(metatype),
        isValid: compileRules(metatype),
      };
      this.declared.set(metatype, declared);
    }
    return declared;
  }
}

async function awaitPromises(request: Values, names: string[]): Promise<void> {
  const pending = names.filter((name) => request[name] instanceof Promise);
  const values = await Promise.all(pending.map((name) => request[name]));
  pending.forEach((name, i) => (request[name] = values[i]));
}

/** The names before brackets: `email` for `email[x]`, which a lookup must not ignore. */
function bracketedIn(values: Values): Set<string> | undefined {
  let names: Set<string> | undefined;
  for (const name in values) {
    const bracket = name.indexOf('[');
    if (bracket > 0) (names ??= new Set()).add(name.slice(0, bracket));
  }
  return names;
}

const bracketedValue = (reader: ReaderFacts | undefined) =>
  new InvalidValue(reader?.isList ? 'must be one JSON array, such as [3,1,2]' : 'must be a single value');

function checked(value: unknown, reader: ReaderFacts | undefined): unknown {
  if (value instanceof Repeated) {
    const [first, ...others] = value.filter((one) => one !== null || reader?.isNullable);
    if (others.length > 0 || first === undefined) return new InvalidValue('must be given once');
    return checked(first, reader);
  }
  if (value === NOT_UTF8) return new InvalidValue('must be valid UTF-8 text');
  return reader ? value : readAny(value);
}

/** Rejects text that the database can't store and integers that would be rounded, as readers do. */
function readAny(value: unknown): unknown {
  if (typeof value === 'string') return isStorable(value) ? value : notStorable();
  if (value instanceof RoundedNumber) {
    const number = Number(value.source);
    const isFraction = Number.isFinite(number) && !Number.isInteger(number);
    return isFraction ? number : new InvalidValue('must not contain a number with too many digits');
  }
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const values = value as Values;
  for (const name in values) {
    const one = (values[name] = readAny(values[name]));
    if (one instanceof InvalidValue) return one;
  }
  return values;
}

const collectMessages = ({ property, constraints = {}, children = [] }: ValidationError): string[] => [
  ...(constraints.whitelistValidation
    ? [`${property} is an unknown field`]
    : constraints.isDefined
      ? [constraints.isDefined]
      : Object.values(constraints)),
  ...children.flatMap(collectMessages).map((text) => `${property}.${text}`),
];
