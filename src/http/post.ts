import { applyDecorators, HttpCode, Post as NestPost } from '@nestjs/common';

/** A POST route that answers 200, as every success here does; Nest's own answers 201. */
export const Post = (path?: string | string[]) => applyDecorators(NestPost(path), HttpCode(200));
