'use strict';

// Shows and finds endpoints, shows code for a request, and sends it.
const page = document.querySelector('.reference');
const { base, source } = page.dataset;
const credential = document.getElementById('credential');
const found = document.getElementById('found');
const menu = document.querySelector('.menu');
const find = document.getElementById('find');
const wide = matchMedia('(min-width: 52.01rem)');
let endpoints = [];
for (const part of page.querySelectorAll('[data-script]')) part.hidden = false;

/** Fetches the endpoints. Those for operators need a token. */
async function load(token) {
  found.textContent = 'Loading…';
  try {
    const response = await fetch(source, {
      credentials: 'omit',
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
    });
    found.textContent = response.ok ? '' : (PROBLEMS[response.status] ?? PROBLEMS.other);
    if (response.ok) show(await response.text());
  } catch {
    found.textContent = PROBLEMS.other;
  }
}

const PROBLEMS = {
  401: 'Enter a valid operator token.',
  404: 'This store has no operator tokens yet.',
  429: 'Too many requests. Try again later.',
  other: 'The endpoints couldn’t be loaded. Reload the page to try again.',
};

function show(markup) {
  const holder = document.createElement('template');
  holder.innerHTML = markup;
  menu.replaceChildren(menu.firstElementChild, holder.content.querySelector('nav'));
  menu.hidden = find.parentElement.hidden = false;
  menu.open = wide.matches;
  document.getElementById('endpoints').replaceChildren(holder.content);
  endpoints = [...document.querySelectorAll('.endpoint')];
  rewrite.length = 0;
  for (const endpoint of endpoints)
    endpoint.addEventListener('toggle', () => prepare(endpoint.querySelector('form')), { once: true });
  openTarget();
}

find.addEventListener('input', search);
find.addEventListener('keydown', (event) => {
  const first = endpoints.find((endpoint) => !endpoint.hidden);
  if (event.key === 'Enter' && first) location.hash = first.id;
});

function search() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const endpoint of endpoints) {
    const text = endpoint.querySelector('summary').textContent.toLowerCase();
    endpoint.hidden = !words.every((word) => text.includes(word));
    document.querySelector(`.menu a[href="#${endpoint.id}"]`).parentElement.hidden = endpoint.hidden;
  }
  for (const group of document.querySelectorAll('.group'))
    group.hidden = [...group.querySelectorAll('.endpoint')].every(({ hidden }) => hidden);
  for (const list of document.querySelectorAll('.menu ul')) {
    list.hidden = [...list.children].every(({ hidden }) => hidden);
    list.previousElementSibling.hidden = list.hidden;
  }
  const visible = endpoints.filter(({ hidden }) => !hidden).length;
  found.textContent = words.length > 0 ? `${visible} of ${endpoints.length}` : '';
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target?.matches('.endpoint')) return;
  target.open = true;
  target.querySelector('summary').focus({ preventScroll: true });
  target.scrollIntoView();
  if (!wide.matches) menu.open = false;
}
addEventListener('hashchange', openTarget);
wide.addEventListener('change', () => (menu.open = wide.matches));

const element = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

let language = 'curl';
const rewrite = [];

/** Adds the code and the button to a form when its endpoint is opened. */
function prepare(form) {
  const choice = element('select', {}, ...Object.keys(LANGUAGES).map((name) => new Option(name, name)));
  const code = element('pre', { tabIndex: 0 });
  code.setAttribute('role', 'region');
  code.setAttribute('aria-label', `Code: ${form.dataset.method} ${form.dataset.path}`);
  const output = element('output', {});
  const sendButton = element('button', { textContent: 'Send request' });
  const write = () => {
    choice.value = language;
    code.textContent = LANGUAGES[language](requestOf(form, credential.value.trim() || 'YOUR_KEY'));
  };
  // This listener runs before the form's own, which rewrites the code.
  choice.addEventListener('input', () => {
    language = choice.value;
    for (const one of rewrite) one();
  });
  form.addEventListener('input', write);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void send(form, output);
  });
  const buttons = element('div', { className: 'buttons' }, sendButton);
  if (navigator.clipboard) {
    const copy = element('button', { type: 'button', className: 'quiet', textContent: 'Copy code' });
    copy.addEventListener('click', async () => {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = 'Copied';
      setTimeout(() => (copy.textContent = 'Copy code'), 2000);
    });
    buttons.append(copy);
  }
  form.append(element('label', { className: 'field language' }, 'Language', choice), code, buttons, output);
  rewrite.push(write);
  write();
}

credential.addEventListener('input', () => {
  for (const write of rewrite) write();
});

/** The request as filled in, with examples for required parameters, and for a choice of which none is filled in. */
function requestOf(form, key) {
  const { method } = form.dataset;
  let { path } = form.dataset;
  const fields = [];
  const isSet = (name) => form.elements[name].value !== '';
  for (const input of form.querySelectorAll('input')) {
    const { needed } = input.dataset;
    const value = input.value || (needed && !needed.split(' ').some(isSet) ? input.placeholder : '');
    if (input.dataset.in === 'path') path = path.replace(`{${input.name}}`, encodeURIComponent(value));
    else if (value !== '') fields.push([input.name, value]);
  }
  const query = method === 'GET' && fields.length > 0 ? `?${new URLSearchParams(fields)}` : '';
  const secured = 'secured' in form.dataset;
  return {
    method,
    url: base + path + query,
    fields: method === 'POST' ? fields : [],
    key: secured ? key : undefined,
  };
}

async function send(form, output) {
  const { method, url, fields, key } = requestOf(form, credential.value.trim());
  const { pathname, search: query } = new URL(url);
  const started = performance.now();
  output.replaceChildren('Sending…');
  try {
    const response = await fetch(location.origin + pathname + query, {
      method,
      credentials: 'omit',
      headers: key ? { Authorization: `Bearer ${key}` } : {},
      body: method === 'POST' ? new URLSearchParams(fields) : undefined,
    });
    const text = await response.text();
    const took = Math.round(performance.now() - started);
    const shown = element('pre', { tabIndex: 0, textContent: pretty(text) });
    shown.setAttribute('role', 'region');
    shown.setAttribute('aria-label', `Your response: ${method} ${form.dataset.path}`);
    output.replaceChildren(element('p', { textContent: `${response.status} in ${took} ms` }), shown);
  } catch {
    output.replaceChildren('No response. Check your connection and try again.');
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const LANGUAGES = {
  curl({ method, url, fields, key }) {
    const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
    const lines = [
      `curl ${method === 'POST' && fields.length === 0 ? '-X POST ' : ''}${quoted(url)}`,
      ...(key ? [`-H ${quoted(`Authorization: Bearer ${key}`)}`] : []),
      ...fields.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`),
    ];
    return lines.join(' \\\n  ');
  },

  JavaScript({ method, url, fields, key }) {
    const options = [
      ...(method === 'POST' ? [`  method: 'POST',`] : []),
      ...(key ? [`  headers: { Authorization: ${text(`Bearer ${key}`)} },`] : []),
      ...(fields.length > 0 ? [`  body: new URLSearchParams(${pairs(fields, '  ', ': ')}),`] : []),
    ];
    const request = options.length > 0 ? `${text(url)}, {\n${options.join('\n')}\n}` : text(url);
    return `const response = await fetch(${request});\nconsole.log(response.status, await response.json());`;
  },

  Python({ method, url, fields, key }) {
    const options = [
      `    ${text(url)},`,
      ...(key ? [`    headers={"Authorization": ${text(`Bearer ${key}`)}},`] : []),
      ...(fields.length > 0
        ? [`    data=urllib.parse.urlencode(${pairs(fields, '    ', ': ')}).encode(),`]
        : method === 'POST'
          ? ['    method="POST",']
          : []),
    ];
    return [
      'import json, urllib.parse, urllib.request',
      '',
      `request = urllib.request.Request(\n${options.join('\n')}\n)`,
      'with urllib.request.urlopen(request) as response:',
      '    print(response.status, json.load(response))',
    ].join('\n');
  },

  Go({ method, url, fields, key }) {
    const hasForm = fields.length > 0;
    const imports = ['fmt', 'io', 'net/http', ...(hasForm ? ['net/url', 'strings'] : [])];
    const form = fields.map(([name, value]) => `\t\t${text(name)}: {${text(value)}},\n`).join('');
    return [
      `package main\n\nimport (\n${imports.map((name) => `\t"${name}"\n`).join('')})\n`,
      'func main() {',
      ...(hasForm ? [`\tform := url.Values{\n${form}\t}`] : []),
      `\trequest, err := http.NewRequest("${method}", ${text(url)}, ${hasForm ? 'strings.NewReader(form.Encode())' : 'nil'})`,
      '\tif err != nil {\n\t\tpanic(err)\n\t}',
      ...(key ? [`\trequest.Header.Set("Authorization", ${text(`Bearer ${key}`)})`] : []),
      ...(hasForm ? ['\trequest.Header.Set("Content-Type", "application/x-www-form-urlencoded")'] : []),
      '\tresponse, err := http.DefaultClient.Do(request)',
      '\tif err != nil {\n\t\tpanic(err)\n\t}',
      '\tdefer response.Body.Close()',
      '\tbody, err := io.ReadAll(response.Body)',
      '\tif err != nil {\n\t\tpanic(err)\n\t}',
      '\tfmt.Println(response.StatusCode, string(body))',
      '}',
    ].join('\n');
  },

  'C#'({ method, url, fields, key }) {
    const entries = fields.map(([name, value]) => `    [${text(name)}] = ${text(value)},\n`).join('');
    const form =
      fields.length > 0
        ? `new FormUrlEncodedContent(new Dictionary<string, string>\n{\n${entries}})`
        : 'null';
    return [
      ...(key ? ['using System.Net.Http.Headers;', ''] : []),
      'using var client = new HttpClient();',
      ...(key
        ? [
            `client.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", ${text(key)});`,
          ]
        : []),
      method === 'POST'
        ? `var response = await client.PostAsync(${text(url)}, ${form});`
        : `var response = await client.GetAsync(${text(url)});`,
      'Console.WriteLine($"{(int)response.StatusCode} {await response.Content.ReadAsStringAsync()}");',
    ].join('\n');
  },
};

/** A string literal in all these languages except the shell. */
function text(value) {
  return JSON.stringify(value);
}

function pairs(fields, indent, between) {
  return `{\n${fields.map(([name, value]) => `${indent}  ${text(name)}${between}${text(value)},\n`).join('')}${indent}}`;
}

const withToken = document.getElementById('with-token');
if (withToken)
  withToken.addEventListener('submit', (event) => {
    event.preventDefault();
    void load(credential.value.trim());
  });
else void load();
