import { getMetadataStorage } from 'class-validator';
import { InvalidValue } from './input-values';
import { readRules } from './parameters';
import type { RequestClass } from './params.decorator';

type Values = Record<string, unknown>;
type Rule = ReturnType<typeof readRules>[number];
type Check = (request: Values, value: unknown) => boolean;

/** The rules of one property. The checks apply if all conditions do. */
interface Property {
  name: string;
  conditions: Check[];
  checks: Check[];
}

const CONDITION = 'conditionalValidation';
const COMPILED = [CONDITION, 'customValidation', 'isDefined', 'whitelistValidation'];

/**
 * Compiles the rules of a request class to a function that tells whether a request is valid, because class-validator
 * collects them again for each request. If it returns false, class-validator decides. Undefined for rules that only
 * class-validator applies: those for objects and elements of lists, in groups, with `validateIf`, or asynchronous. Later
 * changes of the rules have no effect.
 */
export function compileRules(request: RequestClass): ((values: Values) => boolean) | undefined {
  const rules = readRules(request);
  if (rules.length === 0 || !rules.every(isCompiled)) return undefined;
  const properties = new Map<string, Property>();
  for (const rule of rules) {
    const name = rule.propertyName;
    const property = properties.get(name) ?? { name, conditions: [], checks: [] };
    properties.set(name, property);
    if (rule.type === CONDITION) property.conditions.push(rule.constraints[0] as Check);
    else property.checks.push(...readChecks(rule, request.name));
  }
  const all = [...properties.values()];
  return (values) => {
    for (const name in values) {
      const value = values[name];
      if (!properties.has(name) || value instanceof InvalidValue || value instanceof Promise) return false;
    }
    return all.every((property) => meets(values, property));
  };
}

const isCompiled = (rule: Rule): boolean =>
  COMPILED.includes(rule.type) &&
  !rule.each &&
  !rule.validateIf &&
  !rule.groups?.length &&
  readConstraints(rule).every(({ async }) => !async);

const readConstraints = ({ constraintCls }: Rule) =>
  getMetadataStorage().getTargetValidatorConstraints(constraintCls);

const readChecks = (rule: Rule, targetName: string): Check[] =>
  readConstraints(rule).map(({ instance }) => (object, value) => {
    const { propertyName: property, constraints } = rule;
    const result = instance.validate(value, { targetName, property, object, value, constraints });
    // A validator that isn't declared as asynchronous may return a promise. class-validator waits for its own call.
    if (result instanceof Promise) result.catch(() => undefined);
    return result === true;
  });

function meets(values: Values, { name, conditions, checks }: Property): boolean {
  const value = values[name];
  return (
    !conditions.every((applies) => applies(values, value)) || checks.every((check) => check(values, value))
  );
}
