/** The values of a repeated parameter: in a query, in a body, or in both. */
export class Repeated extends Array<unknown> {
  /** Joins two values, each of which may be repeated itself. */
  static override of<T = unknown>(...values: T[]): T[] & Repeated {
    const all = new Repeated();
    for (const value of values)
      if (value instanceof Repeated) all.push(...(value as unknown[]));
      else all.push(value);
    return all as T[] & Repeated;
  }
}

/** The value of a query or form field that isn't valid UTF-8. No valid text contains a lone surrogate. */
export const NOT_UTF8 = '\udfff';

/** A value that its parameter doesn't accept. */
export class InvalidValue {
  /** @param problem Follows the name of the parameter. */
  constructor(readonly problem: string) {}
}

/** Adds a value to the parameters, of which one may have the same name. */
export function addValue(parameters: Record<string, unknown>, name: string, value: unknown): void {
  parameters[name] = Object.hasOwn(parameters, name) ? Repeated.of(parameters[name], value) : value;
}
