import { type ArgumentMetadata, Injectable, ValidationPipe } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validate, type ValidationError } from 'class-validator';
import { ApiError, badRequest } from './api-error';
import { Deferred, InvalidValue, NOT_UTF8, Repeated } from './given-values';
import { readerOf } from './parameters';
import type { RequestClass } from './params.decorator';
import { isStorable, notStorable, readBoolean, readInteger, readNumber } from './readers';

type Values = Record<string, unknown>;

const PRIMITIVES = new Map<unknown, (text: string) => unknown>([
  [Boolean, readBoolean],
  [Number, (text) => (/^\d+$/.test(text) ? readInteger(text) : readNumber(text))],
]);

interface Property {
  name: string;
  isNullable: boolean;
  isList: boolean;
  /** Declared with class-validator only. */
  isPlain: boolean;
}

/** Nest's ValidationPipe for this API's parameters: strict about their types, and with all problems listed. */
@Injectable()
export class ParameterPipe extends ValidationPipe {
  private readonly properties = new Map<RequestClass, Property[]>();

  constructor(private readonly modules: ModuleRef) {
    super({
      transform: true,
      validateCustomDecorators: true,
      transformOptions: { exposeUnsetFields: false },
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const metatype = metadata.metatype as RequestClass | undefined;
    if (!metatype || !this.toValidate(metadata)) return this.transformPrimitive(value, metadata);
    // An object of another custom decorator. For a class that is imported only as a type, tsc emits `Function`.
    if (metadata.type === 'custom' && !isPlain(value)) return value;
    const { given, rejected } = this.given((value ?? {}) as Values, metatype);
    const request = Object.assign(
      plainToInstance(metatype, given, this.transformOptions),
      rejected,
    ) as Values;
    const names = Object.keys(request);
    const deferred = names.filter((name) => request[name] instanceof Deferred);
    if (deferred.length > 0) await Promise.all(deferred.map((name) => this.settle(request, name)));
    const errors = await validate(request, this.validatorOptions);
    const problems = problemsOf(request, names, errors);
    if (problems.length > 0) throw new ApiError(400, problems);
    return request;
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

  /** The declared parameters, without invalid ones. */
  private given(values: Values, metatype: RequestClass) {
    const given: Values = {};
    const rejected: Values = {};
    const bracketed = bracketedIn(values);
    for (const property of this.propertiesOf(metatype)) {
      const { name, isList } = property;
      const isBracketed = bracketed?.has(name);
      if (!isBracketed && !Object.hasOwn(values, name)) continue;
      const value = isBracketed
        ? new InvalidValue(isList ? 'must be one JSON array, such as [3,1,2]' : 'must be a single value')
        : checked(values[name], property);
      (value instanceof InvalidValue ? rejected : given)[name] = value;
    }
    return { given, rejected };
  }

  private async settle(request: Values, name: string): Promise<void> {
    request[name] = await (request[name] as Deferred<unknown>).read(this.modules);
  }

  private propertiesOf(metatype: RequestClass): Property[] {
    let properties = this.properties.get(metatype);
    if (!properties) this.properties.set(metatype, (properties = propertiesIn(metatype)));
    return properties;
  }
}

function isPlain(value: unknown): boolean {
  const prototype: unknown = Object.getPrototypeOf(value ?? {});
  return prototype === Object.prototype || prototype === null;
}

function propertiesIn(metatype: RequestClass): Property[] {
  const prototype = metatype.prototype as object;
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false);
  const names = new Set(rules.map(({ propertyName }) => propertyName).filter((name) => name !== ''));
  return [...names].map((name) => {
    const reader = readerOf(prototype, name);
    return {
      name,
      isNullable: reader?.isNullable ?? false,
      isList: reader?.isList ?? false,
      isPlain: reader === undefined,
    };
  });
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

function checked(value: unknown, { isNullable, isPlain }: Property): unknown {
  if (value instanceof Repeated) {
    const [given, ...others] = value.filter((one) => one !== null || isNullable);
    return others.length > 0 || given === undefined ? new InvalidValue('must be given once') : given;
  }
  if (value === NOT_UTF8) return new InvalidValue('must be valid UTF-8 text');
  return isPlain && !isDeeplyStorable(value) ? notStorable() : value;
}

function isDeeplyStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorable(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(isDeeplyStorable);
}

/** The texts of all problems in the order of declaration. Those that concern several parameters are last. */
function problemsOf(request: Values, names: string[], errors: ValidationError[]): string[] {
  const invalid = names.filter((name) => request[name] instanceof InvalidValue);
  if (errors.length === 0 && invalid.length === 0) return [];
  const texts = new Map(errors.map((error) => [error.property, textsOf(error)]));
  for (const name of invalid) texts.set(name, [`${name} ${(request[name] as InvalidValue).problem}`]);
  return [...new Set([...names, ...texts.keys()])].flatMap((name) => texts.get(name) ?? []);
}

const textsOf = ({ property, constraints = {}, children = [] }: ValidationError): string[] => [
  ...(constraints.isDefined ? [constraints.isDefined] : Object.values(constraints)),
  ...children.flatMap(textsOf).map((text) => `${property}.${text}`),
];
