import { applyDecorators, HttpCode, Post as NestPost } from '@nestjs/common';

/** A POST route with status 200; Nest's own has 201. */
export const Post = (path?: string | string[]) => applyDecorators(NestPost(path), HttpCode(200));
