import { type ArgumentMetadata, Injectable, ValidationPipe } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { getMetadataStorage, type ValidationError, type ValidatorOptions } from 'class-validator';
import { ApiError, badRequest } from './api-error';
import { Deferred, InvalidValue, NOT_UTF8, Repeated } from './given-values';
import { type ReaderFacts, readerOf } from './parameters';
import type { RequestClass } from './params.decorator';
import { isStorable, notStorable, readBoolean, readInteger, readNumber } from './readers';

type Values = Record<string, unknown>;
/** The properties of a request class; undefined: declared with class-validator only. */
type Properties = Map<string, ReaderFacts | undefined>;

const PRIMITIVES = new Map<unknown, (text: string) => unknown>([
  [Boolean, readBoolean],
  [Number, (text) => (/^\d+$/.test(text) ? readInteger(text) : readNumber(text))],
]);

/** Nest's ValidationPipe for this API's parameters: strict about their types, and with all problems listed. */
@Injectable()
export class ParameterPipe extends ValidationPipe {
  private readonly properties = new Map<RequestClass, Properties>();

  constructor(private readonly modules: ModuleRef) {
    super({
      transform: true,
      validateCustomDecorators: true,
      transformOptions: { exposeUnsetFields: false },
      exceptionFactory: (errors) => new ApiError(400, errors.flatMap(textsOf)),
    });
  }

  override transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const metatype = metadata.metatype as RequestClass | undefined;
    if (!metatype || !this.toValidate(metadata)) return super.transform(value, metadata) as Promise<unknown>;
    // An object of another custom decorator. For a class that is imported only as a type, tsc emits `Function`.
    if (metadata.type === 'custom' && !isPlain(value)) return Promise.resolve(value);
    return super.transform(this.given((value ?? {}) as Values, metatype), metadata) as Promise<unknown>;
  }

  /** Nest would read `0x10` as 16, an empty text as 0, 9007199254740993 as another number, and `yes` as false. */
  protected override transformPrimitive(value: unknown, metadata: ArgumentMetadata): unknown {
    const read = typeof value === 'string' ? PRIMITIVES.get(metadata.metatype) : undefined;
    if (!read) return super.transformPrimitive(value, metadata) as unknown;
    const primitive = read(value as string);
    if (primitive instanceof InvalidValue)
      throw badRequest(`${metadata.data ?? 'the value'} ${primitive.problem}`);
    return primitive;
  }

  /** Invalid values have no other errors. In the order of declaration, with those of several parameters last. */
  protected override async validate(request: Values, options?: ValidatorOptions): Promise<ValidationError[]> {
    const names = Object.keys(request);
    const deferred = names.filter((name) => request[name] instanceof Deferred);
    await Promise.all(deferred.map((name) => this.settle(request, name)));
    const errors = new Map((await super.validate(request, options)).map((error) => [error.property, error]));
    for (const property of names) {
      const value = request[property];
      if (value instanceof InvalidValue)
        errors.set(property, { property, constraints: { value: `${property} ${value.problem}` } });
    }
    return [...new Set([...names, ...errors.keys()])].flatMap((name) => errors.get(name) ?? []);
  }

  private async settle(request: Values, name: string): Promise<void> {
    request[name] = await (request[name] as Deferred<unknown>).read(this.modules);
  }

  /** The declared parameters. */
  private given(values: Values, metatype: RequestClass): Values {
    const given: Values = {};
    const bracketed = bracketedIn(values);
    for (const [name, reader] of this.propertiesOf(metatype)) {
      const isBracketed = bracketed?.has(name);
      if (!isBracketed && !Object.hasOwn(values, name)) continue;
      const value = isBracketed ? bracketedValue(reader) : checked(values[name], reader);
      // Without a reader, class-transformer would convert it.
      if (!reader && value instanceof InvalidValue) throw badRequest(`${name} ${value.problem}`);
      given[name] = value;
    }
    return given;
  }

  private propertiesOf(metatype: RequestClass): Properties {
    let properties = this.properties.get(metatype);
    if (!properties) {
      const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false);
      const names = rules.map(({ propertyName }) => propertyName).filter((name) => name !== '');
      properties = new Map(names.map((name) => [name, readerOf(metatype.prototype as object, name)]));
      this.properties.set(metatype, properties);
    }
    return properties;
  }
}

function isPlain(value: unknown): boolean {
  const prototype: unknown = Object.getPrototypeOf(value ?? {});
  return prototype === Object.prototype || prototype === null;
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
    const [given, ...others] = value.filter((one) => one !== null || reader?.isNullable);
    return others.length > 0 || given === undefined ? new InvalidValue('must be given once') : given;
  }
  if (value === NOT_UTF8) return new InvalidValue('must be valid UTF-8 text');
  return reader || isDeeplyStorable(value) ? value : notStorable();
}

function isDeeplyStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorable(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(isDeeplyStorable);
}

const textsOf = ({ property, constraints = {}, children = [] }: ValidationError): string[] => [
  ...(constraints.isDefined ? [constraints.isDefined] : Object.values(constraints)),
  ...children.flatMap(textsOf).map((text) => `${property}.${text}`),
];
