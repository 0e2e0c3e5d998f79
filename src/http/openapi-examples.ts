type Schema = Record<string, unknown>;

const BY_FORMAT: Record<string, unknown> = {
  'date-time': '2024-05-06T07:08:09Z',
  uri: 'https://gamewharf.example/',
  email: 'someone@example.com',
};

const BY_NAME: Record<string, unknown> = {
  email: 'someone@example.com',
  currency: 'USD',
  page: 1,
  per_page: 100,
  game_id: 3,
  collection_id: 12,
  user_id: 29789,
  position: 1,
  download_key: 'sTw4nRkZbq1XoVu8',
  KEY: 'key',
  key: 'sTw4nRkZbq1XoVu8',
  channel_name: 'windows',
  target: 'leaf/x-moon',
  blurb: '<p>The best of its year.</p>',
  description: '<p>Games for a rainy day.</p>',
};

/** An example of the schema: from the examples of its properties, or a plausible value. */
export function exampleOf(schema: Schema, schemas: Record<string, Schema>, name = ''): unknown {
  if (schema.example !== undefined) return schema.example;
  if (typeof schema.$ref === 'string')
    return exampleOf(schemas[schema.$ref.split('/').at(-1)!]!, schemas, name);
  for (const choice of ['allOf', 'oneOf', 'anyOf'])
    if (Array.isArray(schema[choice])) return exampleOf((schema[choice] as Schema[])[0]!, schemas, name);
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const type = Array.isArray(schema.type) ? (schema.type as string[])[0] : schema.type;
  if (type === 'object')
    return Object.fromEntries(
      Object.entries((schema.properties ?? {}) as Record<string, Schema>).map(([key, property]) => [
        key,
        exampleOf(property, schemas, key),
      ]),
    );
  if (type === 'array') return [exampleOf(schema.items as Schema, schemas, name)];
  if (typeof schema.format === 'string' && schema.format in BY_FORMAT) return BY_FORMAT[schema.format];
  if (name in BY_NAME) return BY_NAME[name];
  if (type === 'integer' || type === 'number') return Math.max(1, Number(schema.minimum ?? 1));
  if (type === 'boolean') return true;
  return name === '' ? 'text' : name.replaceAll('_', ' ');
}
