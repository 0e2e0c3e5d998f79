import { ModulesContainer } from '@nestjs/core';
import { type Route, routesOf } from '../../src/auth/routes';
import { theApp, theContract, useStore } from '../support/store';

useStore();

const routes = () => routesOf(theApp().get(ModulesContainer));
const line = ({ method, path, access }: Route) => `${method} ${path} -> ${access}`;

test('who may enter where: every change of access is a line in this snapshot', () => {
  expect(
    routes()
      .map(line)
      .toSorted((a, b) => a.localeCompare(b)),
  ).toMatchSnapshot();
});

test('every route says who may enter', () => {
  expect(routes().filter(({ access }) => access === undefined)).toEqual([]);
});

test('every POST answers 200', () => {
  expect(routes().filter(({ method, status }) => method === 'POST' && status !== 200)).toEqual([]);
});

test('every described operation names its answer', () => {
  const silent = Object.entries(theContract().document.paths).flatMap(([path, item]) =>
    Object.entries(item as Record<string, { responses: Record<string, { content?: object }> }>)
      .filter(([, { responses }]) => !responses['200']?.content)
      .map(([method]) => `${method} ${path}`),
  );
  expect(silent).toEqual([]);
});
