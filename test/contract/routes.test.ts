import { RequestMethod } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { accessOf } from '../../src/auth/access';
import { theApp, theContract, useStore } from '../support/store';

useStore();

type Handler = object & { name: string };

interface Route {
  line: string;
  access: string | undefined;
  handler: string;
  status: number | undefined;
  method: string;
}

function routes(): Route[] {
  const found: Route[] = [];
  for (const module of theApp().get(ModulesContainer).values())
    for (const { metatype } of module.controllers.values()) {
      const controller = metatype as { name: string; prototype: Record<string, Handler> };
      const prefixes = [Reflect.getMetadata('path', controller) as string | string[]].flat();
      for (const name of Object.getOwnPropertyNames(controller.prototype)) {
        if (name === 'constructor') continue;
        const handler = controller.prototype[name]!;
        const paths = Reflect.getMetadata('path', handler) as string | string[] | undefined;
        if (paths === undefined) continue;
        const method = RequestMethod[Reflect.getMetadata('method', handler) as number]!;
        for (const prefix of prefixes)
          for (const path of [paths].flat()) {
            const full = `/${[prefix, path]
              .map((part) => part.replace(/^\/|\/$/g, ''))
              .filter(Boolean)
              .join('/')}`;
            const access = accessOf(handler);
            found.push({
              line: `${method} ${full} -> ${access}`,
              access,
              handler: `${controller.name}.${name}`,
              status: Reflect.getMetadata('__httpCode__', handler) as number | undefined,
              method,
            });
          }
      }
    }
  return found.toSorted((a, b) => a.line.localeCompare(b.line));
}

test('who may enter where: every change of access is a line in this snapshot', () => {
  expect(routes().map(({ line }) => line)).toMatchSnapshot();
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
