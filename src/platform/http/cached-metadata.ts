type ReadMetadata<Value> = (handler: object, controller: object) => Value;

/** Reads each handler's metadata once: reflect-metadata takes 0.3 µs to find none, and every request reads it ten times. */
export function cachedMetadata<Value>(read: ReadMetadata<Value>): ReadMetadata<Value> {
  const known = new Map<object, Map<object, Value>>();
  return (handler, controller) => {
    // Controllers may inherit a handler.
    let values = known.get(handler);
    if (!values) known.set(handler, (values = new Map<object, Value>()));
    const value = values.get(controller);
    if (value !== undefined || values.has(controller)) return value!;
    values.set(controller, read(handler, controller));
    return values.get(controller)!;
  };
}
