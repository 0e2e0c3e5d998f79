import type { OpenAPIObject } from '@nestjs/swagger';
import { html, type Html } from '../layout/html';
import { tag } from '../layout/components';
import {
  type Content,
  createExample,
  findAlternatives,
  type Operation,
  type Parameter,
  listParameters,
  type Route,
  type Schema,
  parameterSchema,
  type Schemas,
} from './openapi';

interface Group {
  name: string;
  description: string;
  routes: Route[];
}

/** The part of the page that is the same for every reader: the menu, which the script moves, and the endpoints. */
export function renderEndpoints(document: OpenAPIObject): Html {
  const groups = groupByTag(document);
  return html`${menu(groups)}
    <details class="introduction">
      <summary>Before your first request: parameters, credentials, errors, limits</summary>
      <div class="stack">${markdown(document.info.description ?? '')}</div>
    </details>
    ${sections(groups, (document.components?.schemas ?? {}) as Schemas)}`;
}

/** Shows readers without JavaScript every endpoint, with a link to its page. */
export function endpointList(document: OpenAPIObject): Html {
  return html`${groupByTag(document).map(
    ({ name, routes }) =>
      html`<h2>${name}</h2>
        <ul class="plain">
          ${routes.map(
            ({ method, path, operation }) =>
              html`<li>
                <a href="/docs/endpoints/${toElementId(operation.operationId)}"
                  ><code>${method.toUpperCase()} ${path}</code></a
                >: ${inline(operation.summary)} ${parameterList(listParameters(operation))}
              </li>`,
          )}
        </ul>`,
  )}`;
}

interface EndpointPage {
  title: string;
  main: Html;
}

/** The description of one endpoint, by the ID in its URL. */
export function endpointPage(document: OpenAPIObject, id: string): EndpointPage | undefined {
  const route = groupByTag(document)
    .flatMap(({ routes }) => routes)
    .find(({ operation }) => toElementId(operation.operationId) === id);
  if (!route) return undefined;
  const schemas = (document.components?.schemas ?? {}) as Schemas;
  const { summary, deprecated } = route.operation;
  return {
    title: summary,
    main: html`<h1>${inline(summary)}</h1>
      <p>
        ${badge(route.method)}
        <code>${renderPath(route.path)}</code>${deprecated && html` ${tag('Deprecated')}`}
      </p>
      <h2>Description</h2>
      ${description(route, schemas)}
      <p><a href="/docs">API reference</a></p>`,
  };
}

const parameterList = (parameters: Parameter[]): Html =>
  html`${
    parameters.length > 0 &&
    html`<br /><small
        >Parameters:
        ${parameters.map(({ name, required }, i) => html`${i > 0 && ', '}<code>${name}</code>${required && ' (required)'}`)}</small
      >`
  }`;

function groupByTag(document: OpenAPIObject): Group[] {
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
      method,
      path,
      operation,
    })),
  );
  return (document.tags ?? [])
    .map(({ name, description }) => ({
      name,
      description: description ?? '',
      // Each route is listed once, under its first tag.
      routes: routes.filter(({ operation }) => operation.tags?.[0] === name),
    }))
    .filter(({ routes }) => routes.length > 0);
}

const toElementId = (text: string) => text.replace(/[^a-zA-Z0-9]+/g, '-');

/** Renders `code` in the Markdown of descriptions. */
const inline = (text: string): Html =>
  html`${text.split('`').map((part, i) => (i % 2 ? html`<code>${part}</code>` : part))}`;

/** Renders the headings and paragraphs in the Markdown of descriptions. */
const markdown = (text: string): Html =>
  html`${text
    .split('\n\n')
    .filter(Boolean)
    .map((block) =>
      block.startsWith('## ') ? html`<h3>${inline(block.slice(3))}</h3>` : html`<p>${inline(block)}</p>`,
    )}`;

const badge = (method: string): Html => html`<span class="method ${method}">${method.toUpperCase()}</span>`;

const renderPath = (path: string): Html =>
  html`${path.split('/').map((part, i) => (i === 0 ? part : html`/<wbr />${part}`))}`;

const menu = (groups: Group[]): Html =>
  html`<nav aria-label="Endpoints">
    ${groups.map(
      ({ name, routes }) =>
        html`<h2>${name}</h2>
          <ul>
            ${routes.map(
              ({ method, path, operation }) =>
                html`<li>
                  <a href="#${toElementId(operation.operationId)}"
                    >${badge(method)}<span>${renderPath(path)}</span></a
                  >
                </li>`,
            )}
          </ul>`,
    )}
  </nav>`;

const sections = (groups: Group[], schemas: Schemas): Html =>
  html`${groups.map(
    ({ name, description, routes }) =>
      html`<section class="group" aria-labelledby="tag-${toElementId(name)}">
        <h2 id="tag-${toElementId(name)}">${name}</h2>
        ${markdown(description)} ${routes.map((route) => endpoint(route, schemas))}
      </section>`,
  )}`;

function endpoint({ method, path, operation }: Route, schemas: Schemas): Html {
  const id = toElementId(operation.operationId);
  return html`<details class="endpoint" id="${id}">
    <summary>
      ${badge(method)} <code>${renderPath(path)}</code>
      <span class="summary"
        >${inline(operation.summary)}${operation.deprecated && html` <strong>Deprecated</strong>`}</span
      >
    </summary>
    <div class="stack">
      ${description(
        { method, path, operation },
        schemas,
        tryForm(id, { method, path, operation }, listParameters(operation)),
      )}
    </div>
  </details>`;
}

/** Parameters and responses; `form` sends requests. */
function description({ method, path, operation }: Route, schemas: Schemas, form?: Html): Html {
  const parameters = listParameters(operation);
  const name = `${method.toUpperCase()} ${path}`;
  return html`${markdown(operation.description ?? '')}
  ${
    parameters.length === 0
      ? html`<p>No parameters.</p>`
      : table(`Parameters: ${name}`, 'Parameter', parameters.map(parameterRow))
  }
  ${form} ${renderResponses(name, operation, schemas)}`;
}

/** A table that can be scrolled with the keyboard if it doesn't fit. */
const table = (label: string, first: string, rows: Html[]): Html =>
  html`<div class="scroll" role="region" tabindex="0" aria-label="${label}">
    <table>
      <thead>
        <tr>
          <th scope="col">${first}</th>
          <th scope="col">Type</th>
          <th scope="col">Meaning</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;

const parameterRow = (parameter: Parameter): Html =>
  html`<tr>
    <th scope="row">
      <code>${parameter.name}</code
      >${parameter.required && html` ${tag('Required')}`}${parameter.in === 'header' && html` ${tag('Header')}`}
    </th>
    <td>${renderType(parameterSchema(parameter))}</td>
    <td>${inline(parameter.description ?? '')}${renderRules(parameterSchema(parameter))}</td>
  </tr>`;

const schemaChoices = (schema: Schema) => schema.oneOf ?? schema.anyOf ?? schema.allOf;

function isNullable(schema: Schema): boolean {
  return [schema.type].flat().includes('null') || (schemaChoices(schema) ?? []).some(isNullable);
}

const joinWithOr = (parts: Html[]): Html => html`${parts.map((part, i) => (i ? html` or ${part}` : part))}`;

function renderType(schema: Schema): Html {
  if (schema.$ref) return html`object`;
  if (schema.enum)
    return joinWithOr(
      schema.enum
        .filter((value) => value !== null)
        .map((value) => html`<code>${JSON.stringify(value)}</code>`),
    );
  const choices = schemaChoices(schema)?.filter(({ type }) => type !== 'null');
  if (choices) return joinWithOr(choices.map(renderType));
  const types = [schema.type ?? 'any'].flat().filter((type) => type !== 'null');
  return joinWithOr(
    types.map((type) =>
      type === 'array' && schema.items ? html`list of ${renderType(schema.items)}` : html`${type}`,
    ),
  );
}

function renderRules(schema: Schema): Html {
  const rules = [
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    (schema.minimum ?? 0) > 0 && `from ${schema.minimum}`,
    schema.maximum !== undefined && `up to ${schema.maximum}`,
    schema.maxItems !== undefined && `at most ${schema.maxItems}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ].filter((rule) => rule !== false);
  return html`${rules.length > 0 && html` <small>(${rules.join(', ')})</small>`}`;
}

/** The fields of a response, nested ones included. */
function fieldRows(schema: Schema, schemas: Schemas): Html[] {
  const rows: Html[] = [];
  const visit = (one: Schema, prefix: string, depth: number): void => {
    const schema = one.$ref ? (schemas[one.$ref.split('/').at(-1)!] ?? {}) : one;
    for (const choice of schemaChoices(schema) ?? []) visit(choice, prefix, depth);
    if (schema.items) return visit(schema.items, `${prefix}[]`, depth);
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const path = prefix ? `${prefix}.${name}` : name;
      rows.push(
        html`<tr>
          <th scope="row">
            <code>${path}</code>${!schema.required?.includes(name) && html` ${tag('Optional')}`}
          </th>
          <td>${renderType(property)}${isNullable(property) && html` ${tag('May be null')}`}</td>
          <td>${inline(property.description ?? '')}</td>
        </tr>`,
      );
      if (depth < 4) visit(property, path, depth + 1);
    }
  };
  visit(schema, '', 0);
  return rows;
}

const listExamples = (content?: Content): unknown[] => {
  const { example, examples = {} } = content?.['application/json'] ?? {};
  return [...Object.values(examples).map(({ value }) => value), ...(example === undefined ? [] : [example])];
};

const code = (label: string, text: string): Html =>
  html`<pre tabindex="0" role="region" aria-label="${label}"><code>${text}</code></pre>`;

function renderResponses(name: string, { responses }: Operation, schemas: Schemas): Html {
  const [good, bad] = [true, false].map((isGood) =>
    Object.entries(responses).filter(([status]) => status < '400' === isGood),
  );
  return html`${good!.map(([status, { description, content }]) => {
      const rows = fieldRows(content?.['application/json']?.schema ?? {}, schemas);
      return html`<h3>Response ${status}</h3>
        ${description !== 'Success.' && html`<p>${inline(description)}</p>`}
        ${listExamples(content).map((example) => code(`Response ${status}: ${name}`, JSON.stringify(example, null, 2)))}
        ${rows.length > 0 && table(`Fields of the response: ${name}`, 'Field', rows)}`;
    })}
    <details>
      <summary>Errors: ${bad!.map(([status]) => status).join(', ')}</summary>
      <dl class="facts">
        ${bad!.map(
          ([status, { description, content }]) =>
            html`<dt>${status}</dt>
              <dd>
                ${inline(description)}${listExamples(content).map((example) => html` <code>${JSON.stringify(example)}</code>`)}
              </dd>`,
        )}
      </dl>
    </details>`;
}

function tryForm(id: string, { method, path, operation }: Route, parameters: Parameter[]): Html {
  const needed = findAlternatives(operation, parameters);
  return html`<h3>Request</h3>
    <form
      class="try stack"
      data-method="${method.toUpperCase()}"
      data-path="${path}"
      ${operation.security && html` data-secured`}
      novalidate
    >
      <div class="fields">
        ${parameters
          .filter((one) => one.in !== 'header')
          .map((parameter) => {
            const { name, required } = parameter;
            return html`<label class="field" for="${id}-${toElementId(name)}"
              >${name}
              <input
                id="${id}-${toElementId(name)}"
                name="${name}"
                data-in="${parameter.in === 'path' ? 'path' : 'request'}"
                ${needed[name] && html` data-needed="${needed[name].join(' ')}"`}
                ${required && html` required`}
                placeholder="${createExample(parameter)}"
                autocomplete="off"
                spellcheck="false"
            /></label>`;
          })}
      </div>
    </form>`;
}
