/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the routes */
import { InvalidArgumentError } from 'commander';
import { SCOPES } from '../auth/access/scopes';
import type { Commands, OperatorCommand } from './operator-command';
import { printTable } from './print-table';

export const commands: Commands = { scopes: registerScopes };

function registerScopes(scopes: OperatorCommand): void {
  scopes.json().handler(
    ({ app }, { json = false }: { json?: boolean }) => {
      const { ModulesContainer } = require('@nestjs/core') as typeof import('@nestjs/core');
      const { listRoutes } = require('../auth/access/routes') as typeof import('../auth/access/routes');
      const routes = listRoutes(app.get(ModulesContainer)).map(({ method, path, access = 'closed' }) => ({
        method,
        path,
        access: [access].flat(),
      }));
      if (json) {
        for (const [scope, description] of Object.entries(SCOPES))
          console.log(JSON.stringify({ scope, description }));
        for (const route of routes) console.log(JSON.stringify(route));
        return Promise.resolve();
      }
      printTable(Object.entries(SCOPES));
      console.log();
      printTable(routes.map(({ method, path, access }) => [method, path, access.join(' or ')]));
      return Promise.resolve();
    },
    { database: false },
  );
}

export function parseScopes(text: string): string[] {
  const scopes = text.split(/[\s,]+/).filter((scope) => scope !== '');
  const unknown = scopes.filter((scope) => !(scope in SCOPES));
  if (scopes.length === 0 || unknown.length > 0)
    throw new InvalidArgumentError('Unknown scope. `gamewharf scopes` lists all scopes.');
  return scopes;
}
