'use strict';

const credential = document.getElementById('credential-text');
document.getElementById('credential').addEventListener('submit', (event) => event.preventDefault());

for (const form of document.querySelectorAll('form[data-path]'))
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void send(form);
  });

async function send(form) {
  const output = form.querySelector('output');
  const { method } = form.dataset;
  let { path } = form.dataset;
  const fields = new URLSearchParams();
  for (const input of form.querySelectorAll('input')) {
    if (input.dataset.in === 'path') path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value !== '') fields.append(input.name, input.value);
  }
  const query = method === 'GET' && fields.size > 0 ? `?${fields}` : '';
  const address = new URL(`.${path}${query}`, document.baseURI);
  const secret = 'secured' in form.dataset ? credential.value.trim() : '';
  const request = {
    method,
    credentials: 'omit',
    headers: secret ? { Authorization: `Bearer ${secret}` } : {},
    body: method === 'POST' ? fields : undefined,
  };
  const started = performance.now();
  output.replaceChildren(line('Sending…'));
  try {
    const response = await fetch(address, request);
    const text = await response.text();
    const took = Math.round(performance.now() - started);
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    output.replaceChildren(
      line(`${response.status} in ${took} ms`),
      block('Answer', pretty(text)),
      block('Headers', headers),
      block('The same with curl', curl(address, method, fields, secret !== '')),
    );
  } catch {
    output.replaceChildren(line('The service did not answer.'));
  }
}

function line(text) {
  const element = document.createElement('p');
  element.textContent = text;
  return element;
}

function block(title, text) {
  const details = document.createElement('details');
  details.open = title === 'Answer';
  const summary = document.createElement('summary');
  summary.textContent = title;
  const pre = document.createElement('pre');
  pre.tabIndex = 0;
  pre.textContent = text;
  details.append(summary, pre);
  return details;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

// The credential is not written out: what is copied from here ends up in chats and tickets.
function curl(address, method, fields, secured) {
  const parts = ['curl', quoted(address.href)];
  if (secured) parts.push('-H "Authorization: Bearer $API_KEY"');
  if (method === 'POST') {
    parts.push('-X POST');
    for (const [name, value] of fields) parts.push('--data-urlencode', quoted(`${name}=${value}`));
  }
  return parts.join(' ');
}
