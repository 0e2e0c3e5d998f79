import { applyDecorators, HttpCode, Post as NestPost, SetMetadata } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { THROTTLER_SKIP } from '@nestjs/throttler/dist/throttler.constants';

/** A POST route with status 200; Nest's own has 201. */
export const Post = (path?: string | string[]) => applyDecorators(NestPost(path), HttpCode(200));

const BODY_ONLY = 'gamewharf:body-only';

export const ERRORS = { $ref: '#/components/schemas/Errors' };

/** On a handler: an error that it answers itself, with its possible texts. */
export const Fails = (status: number, ...texts: string[]) =>
  ApiResponse({
    status,
    description: texts.map((text) => `\`${text}\``).join(', '),
    content: { 'application/json': { schema: ERRORS, example: { errors: [texts[0]] } } },
  });

/** On a handler that refuses parameters in the query string. */
export const BodyOnly = () => SetMetadata(BODY_ONLY, true);

export const isBodyOnly = (handler: object): boolean => Reflect.getMetadata(BODY_ONLY, handler) === true;

/** Whether `@SkipThrottle` turns the limit off; its name for all limits is `default`. */
export const isUnlimited = (handler: object, controller: object, limit = 'default'): boolean =>
  [handler, controller]
    .map((target) => Reflect.getMetadata(THROTTLER_SKIP + limit, target) as boolean | undefined)
    .find((skips) => skips !== undefined) ?? false;
