import type { OpenAPIObject } from '@nestjs/swagger';

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  items?: Schema;
  format?: string;
  description?: string;
  maxLength?: number;
  minLength?: number;
  minimum?: number;
  maximum?: number;
  maxItems?: number;
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  oneOf?: Schema[];
  allOf?: Schema[];
  anyOf?: Schema[];
}

type Content = Record<
  string,
  { schema?: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }
>;

interface Parameter {
  name: string;
  in: 'path' | 'query' | 'body';
  required?: boolean;
  description?: string;
  schema?: Schema;
  content?: Content;
  example?: unknown;
}

interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  deprecated?: boolean;
  tags?: string[];
  security?: object[];
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content?: Content }>;
}

interface Route {
  method: string;
  path: string;
  operation: Operation;
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escape = (text: unknown) => String(text).replace(/[&<>"']/g, (character) => ENTITIES[character]!);

/** The subset of Markdown that our descriptions use: headings, paragraphs, `code`. */
const markdown = (text: string) =>
  text
    .split('\n\n')
    .map((block) => {
      const inner = (line: string) => escape(line).replace(/`([^`]+)`/g, '<code>$1</code>');
      return block.startsWith('## ') ? `<h3>${inner(block.slice(3))}</h3>` : `<p>${inner(block)}</p>`;
    })
    .join('\n');

/** The reference as HTML. Only the forms to try a request need JavaScript. */
export function referencePage(document: OpenAPIObject): string {
  const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
      method,
      path,
      operation,
    })),
  );
  const groups = (document.tags ?? []).map(({ name, description }) => ({
    name,
    description: description ?? '',
    routes: routes.filter(({ operation }) => operation.tags?.includes(name)),
  }));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(document.info.title)} API reference</title>
<link rel="stylesheet" href="docs/reference.css">
<script src="docs/reference.js" defer></script>
</head>
<body>
<a class="skip" href="#reference">Skip to the reference</a>
<header>
<h1>${escape(document.info.title)} <span>API reference</span></h1>
<p><a href="openapi.json">OpenAPI description</a></p>
</header>
<nav aria-label="Routes">
${groups.map(navigation).join('\n')}
</nav>
<main id="reference" tabindex="-1">
<section aria-labelledby="introduction">
<h2 id="introduction">Before the first request</h2>
${markdown(document.info.description ?? '')}
<form id="credential" class="credential" autocomplete="off">
<label for="credential-text">Credential to try requests with</label>
<input id="credential-text" type="password" autocomplete="off" spellcheck="false" aria-describedby="credential-help">
<p id="credential-help">An API key or a JWT. It stays in this page, and is forgotten when the page is closed.</p>
</form>
<noscript><p>To try a request from this page, allow its script.</p></noscript>
</section>
${groups.map((group) => section(group, schemas)).join('\n')}
</main>
</body>
</html>
`;
}

const idOf = (text: string) => text.replace(/[^a-zA-Z0-9]+/g, '-');

const navigation = ({ name, routes }: { name: string; routes: Route[] }) => `<h2>${escape(name)}</h2>
<ul>
${routes
  .map(
    ({ method, path, operation }) =>
      `<li><a href="#${idOf(operation.operationId)}"><span class="method ${method}">${method.toUpperCase()}</span> ${escape(path)}</a></li>`,
  )
  .join('\n')}
</ul>`;

const section = (
  { name, description, routes }: { name: string; description: string; routes: Route[] },
  schemas: Record<string, Schema>,
) => `<section aria-labelledby="tag-${idOf(name)}">
<h2 id="tag-${idOf(name)}">${escape(name)}</h2>
${markdown(description)}
${routes.map((route) => article(route, schemas)).join('\n')}
</section>`;

function article({ method, path, operation }: Route, schemas: Record<string, Schema>): string {
  const id = idOf(operation.operationId);
  const parameters = [...(operation.parameters ?? []), ...bodyParameters(operation)];
  return `<article id="${id}" aria-labelledby="${id}-title">
<h3 id="${id}-title"><span class="method ${method}">${method.toUpperCase()}</span> <code>${escape(path).replaceAll('/', '/<wbr>')}</code></h3>
<p class="summary">${escape(operation.summary)}${operation.deprecated ? ' <strong>Deprecated</strong>' : ''}</p>
${markdown(operation.description ?? '')}
${parameters.length > 0 ? parameterTable(parameters) : '<p>No parameters.</p>'}
<h4>Answers</h4>
${answers(operation, schemas)}
${tryForm(id, method, path, operation, parameters)}
</article>`;
}

function bodyParameters({ requestBody }: Operation): Parameter[] {
  const schema = requestBody?.content['application/x-www-form-urlencoded']?.schema;
  const example = (requestBody?.content['application/json']?.example ?? {}) as Record<string, unknown>;
  const required = schema?.required;
  return Object.entries(schema?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'body',
    required: required?.includes(name),
    description: schema.description,
    schema,
    example: example[name],
  }));
}

const schemaOf = (parameter: Parameter): Schema =>
  parameter.schema ?? Object.values(parameter.content ?? {})[0]?.schema ?? {};

const parameterTable = (parameters: Parameter[]) => `<h4>Parameters</h4>
<div class="wide"><table>
<thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>
${parameters
  .map(
    (
      parameter,
    ) => `<tr><th scope="row"><code>${escape(parameter.name)}</code>${parameter.required ? ' <em>required</em>' : ''}</th>
<td>${typeOf(schemaOf(parameter))}</td><td>${escape(parameter.description ?? '')}${rulesOf(schemaOf(parameter))}</td></tr>`,
  )
  .join('\n')}
</tbody></table></div>`;

function typeOf(schema: Schema): string {
  if (schema.$ref) return escape(schema.$ref.split('/').at(-1));
  if (schema.enum)
    return schema.enum.map((value) => `<code>${escape(JSON.stringify(value))}</code>`).join(' or ');
  const choices = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (choices) return choices.map(typeOf).join(' or ');
  const types = [schema.type ?? 'any'].flat();
  return types
    .map((type) => (type === 'array' && schema.items ? `list of ${typeOf(schema.items)}` : escape(type)))
    .join(' or ');
}

function rulesOf(schema: Schema): string {
  const rules = [
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    (schema.minimum ?? 0) > 0 && `from ${schema.minimum}`,
    schema.maximum !== undefined && `up to ${schema.maximum}`,
    schema.maxItems !== undefined && `at most ${schema.maxItems}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ].filter(Boolean);
  return rules.length > 0 ? ` <small>(${escape(rules.join(', '))})</small>` : '';
}

function answers({ responses }: Operation, schemas: Record<string, Schema>): string {
  return Object.entries(responses)
    .map(([status, { description, content }]) => {
      const media = content?.['application/json'];
      const fields = status.startsWith('2') && media?.schema ? fieldList(media.schema, schemas) : '';
      const examples = Object.values(media?.examples ?? {}).map(({ value }) => value);
      if (media?.example !== undefined) examples.push(media.example);
      const example = examples
        .map(
          (value) =>
            `<pre tabindex="0" aria-label="Example of ${status}"><code>${escape(JSON.stringify(value, null, 2))}</code></pre>`,
        )
        .join('\n');
      const open = status.startsWith('2') ? ' open' : '';
      return `<details class="answer"${open}><summary><span class="status s${status[0]}">${status}</span> ${inline(description)}</summary>
${example}${fields}</details>`;
    })
    .join('\n');
}

const inline = (text: string) => escape(text).replace(/`([^`]+)`/g, '<code>$1</code>');

/** A table of the fields of an answer, nested ones included. */
function fieldList(schema: Schema, schemas: Record<string, Schema>): string {
  const rows: string[] = [];
  const visit = (one: Schema, prefix: string, depth: number): void => {
    const resolved = one.$ref ? (schemas[one.$ref.split('/').at(-1)!] ?? {}) : one;
    for (const choice of resolved.allOf ?? []) visit(choice, prefix, depth);
    if (resolved.items) return visit(resolved.items, `${prefix}[]`, depth);
    for (const [name, property] of Object.entries(resolved.properties ?? {})) {
      const path = prefix ? `${prefix}.${name}` : name;
      const optional = resolved.required?.includes(name) ? '' : ' <em>not always</em>';
      rows.push(
        `<tr><th scope="row"><code>${escape(path)}</code>${optional}</th><td>${typeOf(property)}</td><td>${escape(property.description ?? '')}</td></tr>`,
      );
      if (depth < 4) visit(property, path, depth + 1);
    }
  };
  visit(schema, '', 0);
  if (rows.length === 0) return '';
  return `<div class="wide"><table><thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>`;
}

function tryForm(
  id: string,
  method: string,
  path: string,
  operation: Operation,
  parameters: Parameter[],
): string {
  const field = (parameter: Parameter) => {
    const { name, required, example } = parameter;
    const input = `${id}-${idOf(name)}`;
    const place = parameter.in === 'path' ? 'path' : 'request';
    const hint = example ?? Object.values(parameter.content ?? {})[0]?.example;
    const text = hint === undefined ? '' : typeof hint === 'string' ? hint : JSON.stringify(hint);
    return `<div><label for="${input}">${escape(name)}${required ? ' <em>required</em>' : ''}</label>
<input id="${input}" name="${escape(name)}" data-in="${place}"${required ? ' required' : ''} placeholder="${escape(text)}" autocomplete="off" spellcheck="false"></div>`;
  };
  return `<details class="try"><summary>Try it</summary>
<form data-method="${method.toUpperCase()}" data-path="${escape(path)}"${operation.security ? ' data-secured' : ''} novalidate>
${parameters.map(field).join('\n')}
<button type="submit">Send ${method.toUpperCase()} ${escape(path)}</button>
<output aria-live="polite"></output>
</form></details>`;
}
