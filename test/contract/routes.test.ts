import { readFileSync } from 'node:fs';
import { ModulesContainer } from '@nestjs/core';
import { type Route, listRoutes } from '../../src/auth/access/routes';
import { theApp, useStore } from '../support/app';
import { theContract } from '../support/http';

useStore({ SIGN_UP: 'true' });

const routes = () => listRoutes(theApp().get(ModulesContainer));
const line = ({ method, path, access }: Route) => `${method} ${path} -> ${[access].flat().join(' or ')}`;

test('access by route: every change is a line in this snapshot', () => {
  expect(
    routes()
      .map(line)
      .toSorted((a, b) => a.localeCompare(b)),
  ).toMatchSnapshot();
});

test('every route declares its access', () => {
  expect(routes().filter(({ access }) => access === undefined)).toEqual([]);
});

test('the page of the legacy API lists its routes', () => {
  const page = readFileSync('docs/reference/legacy.md', 'utf8');
  const listed = [...page.matchAll(/^\| `(\/api\/1\/[^`]+)`/gm)].map(([, path]) => path);
  const served = routes()
    .filter(({ path }) => path.startsWith('/api/1/'))
    .map(({ path }) =>
      path.replace(':KEY', 'KEY').replace(':game_id', 'GAME_ID').replace(':upload_id', 'UPLOAD_ID'),
    );
  expect(listed.toSorted()).toEqual(served.toSorted());
});

test('every documented write accepts an Idempotency-Key, except those that store nothing to repeat', () => {
  const without = theContract()
    .operations.filter(
      ([name, { parameters = [] }]) =>
        name.startsWith('POST ') && !parameters.some((one) => one.name === 'Idempotency-Key'),
    )
    .map(([name]) => name);
  expect(without.toSorted()).toEqual([
    // If a client retries one of these, another token or code is as good as the first.
    'POST /credentials/subkey',
    'POST /oauth/device',
    'POST /oauth/device/poll',
    'POST /oauth/revoke',
    'POST /oauth/token',
    'POST /operator/users/{user_id}/export',
  ]);
});

test('every documented operation has a response schema', () => {
  const silent = Object.entries(theContract().document.paths).flatMap(([path, item]) =>
    Object.entries(item as Record<string, { responses: Record<string, { content?: object }> }>)
      .filter(([, { responses }]) => !responses['200']?.content && !responses['302'])
      .map(([method]) => `${method} ${path}`),
  );
  expect(silent).toEqual([]);
});
