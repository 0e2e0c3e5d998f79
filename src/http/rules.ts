import { getMetadataStorage, registerDecorator, type ValidationError } from 'class-validator';

type RequestClass = abstract new () => object;
type Schema = Record<string, unknown>;

/** A class-validator decorator on a property. */
interface Rule {
  name: string;
  constraint: unknown;
  /** Whether the decorator has its own message. */
  hasMessage: boolean;
}

/** The OpenAPI keywords and error texts of decorators; others have class-validator's texts. */
const WORDS: Record<
  string,
  { keywords: (constraint: never) => Schema; problem?: (constraint: never) => string }
> = {
  min: {
    keywords: (minimum: number) => ({ minimum }),
    problem: (minimum: number) => `must be at least ${minimum}`,
  },
  max: {
    keywords: (maximum: number) => ({ maximum }),
    problem: (maximum: number) => `must be at most ${maximum}`,
  },
  isIn: {
    keywords: (values: readonly string[]) => ({ enum: values }),
    problem: (values: readonly string[]) => `must be one of ${values.join(', ')}`,
  },
  matches: { keywords: ({ source }: RegExp) => ({ pattern: source }) },
  isNotEmpty: { keywords: () => ({ minLength: 1 }) },
  minLength: { keywords: (minLength: number) => ({ minLength }) },
  maxLength: { keywords: (maxLength: number) => ({ maxLength }) },
  maxCharacters: {
    keywords: (maxLength: number) => ({ maxLength }),
    problem: (maxLength: number) => `must be at most ${maxLength} characters`,
  },
};

interface Rules {
  byProperty: ReadonlyMap<string, Rule[]>;
  /** A missing property breaks a rule. */
  requiresSome: boolean;
}

const known = new WeakMap<RequestClass, Rules>();

/** The rules of a request class, cached. */
export function rulesOf(request: RequestClass): Rules {
  let rules = known.get(request);
  if (!rules) {
    const byProperty = new Map<string, Rule[]>();
    const metadata = getMetadataStorage().getTargetValidationMetadatas(request, '', false, false);
    for (const { name = '', propertyName, constraints, message } of metadata) {
      const rule = { name, constraint: constraints?.[0] as unknown, hasMessage: message !== undefined };
      byProperty.set(propertyName, [...(byProperty.get(propertyName) ?? []), rule]);
    }
    rules = { byProperty, requiresSome: metadata.some(({ name }) => name === 'isDefined') };
    known.set(request, rules);
  }
  return rules;
}

export const keywordsOf = (request: RequestClass, property: string): Schema =>
  Object.assign(
    {},
    ...(rulesOf(request).byProperty.get(property) ?? []).map(({ name, constraint }) =>
      WORDS[name]?.keywords(constraint as never),
    ),
  );

/** The error texts of the rules that a property breaks. */
export function problemsOf(request: RequestClass, { property, constraints = {} }: ValidationError): string[] {
  const rules = rulesOf(request).byProperty.get(property) ?? [];
  const constraintOf = (name: string) => rules.find((rule) => rule.name === name)?.constraint;
  return Object.entries(constraints).map(([name, text]) => {
    const problem = WORDS[name]?.problem;
    if (!problem || rules.some((rule) => rule.name === name && rule.hasMessage)) return text;
    const [min, max] = [constraintOf('min'), constraintOf('max')];
    if ((name === 'min' || name === 'max') && min !== undefined && max !== undefined)
      return `${property} must be between ${String(min)} and ${String(max)}`;
    return `${property} ${problem(constraintOf(name) as never)}`;
  });
}

// Code points have one or two units, so most texts need no counting.
const fits = (text: string, max: number) =>
  text.length <= max || (text.length <= 2 * max && [...text].length <= max);

/** Counts code points, as the database does; class-validator's MaxLength ignores variation selectors. */
export const MaxCharacters =
  (max: number): PropertyDecorator =>
  (prototype, name) =>
    registerDecorator({
      name: 'maxCharacters',
      target: prototype.constructor,
      propertyName: String(name),
      constraints: [max],
      validator: { validate: (value) => typeof value !== 'string' || fits(value, max) },
    });
