import { SetMetadata } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';

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
