import { type INestApplication, Injectable } from '@nestjs/common';
import { describeApi } from '../../platform/openapi/describe-api';

interface ApiPath {
  template: string;
  pattern: RegExp;
}

/** The paths of the API description, such as `/games/{game_id}/purchases`, including legacy ones and those for operators. */
@Injectable()
export class ApiPaths {
  private paths: ApiPath[] = [];

  /** Reads the description once, when all modules are known. */
  read(app: INestApplication): void {
    const templates = (['everybody', 'operator'] as const).flatMap((audience) =>
      Object.keys(describeApi(app, audience).paths),
    );
    this.paths = templates
      .filter((template) => !isMockPath(template))
      .map((template) => ({ template, pattern: toPattern(template) }))
      // Paths without parameters first: `/profile/games` isn't `/profile/{name}`.
      .toSorted((a, b) => parameterCount(a.template) - parameterCount(b.template));
  }

  has(template: string): boolean {
    return this.paths.some((path) => path.template === template);
  }

  find(path: string): string | null {
    return this.paths.find(({ pattern }) => pattern.test(path))?.template ?? null;
  }
}

export const isMockPath = (path: string): boolean => /^\/mock(?:[/?]|$)/.test(path);

const parameterCount = (template: string) => template.split('{').length;

const toPattern = (template: string) =>
  new RegExp(`^${template.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')}$`);
