import {
  applyDecorators,
  createParamDecorator,
  type ExecutionContext,
  SetMetadata,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request } from 'express';
import { PAGES } from '../../auth/access/access';
import { MAX_FORM_BYTES } from '../../platform/input/body';
import { MaxBody } from '../../platform/input/body.guard';
import { readForm, readQuery } from '../../platform/input/form';
import { PageErrorFilter } from './page-error.filter';
import { FOR_BROWSERS, PageGuard, SECRET_PATH } from './page.guard';
import { PageInterceptor } from './page.interceptor';
import { parseId } from './components';

/** Hides a handler from API clients, which expect another endpoint at its path. */
export const ForBrowsers = () => SetMetadata(FOR_BROWSERS, true);

/** Marks a controller of pages whose path contains a secret: no referrer, and no search engine. */
export const SecretPath = () => SetMetadata(SECRET_PATH, true);

/** Marks a controller of pages: sessions instead of credentials, form tokens, handlers that return a Page, and errors as pages. */
export const Pages = () => applyDecorators(PagesInDescription(), ApiExcludeController());

/** `Pages` for a controller whose routes also respond with JSON. */
export const PagesInDescription = () =>
  applyDecorators(
    SetMetadata(PAGES, true),
    MaxBody(MAX_FORM_BYTES),
    UseGuards(PageGuard),
    UseInterceptors(PageInterceptor),
    UseFilters(PageErrorFilter),
  );

const readRequest = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>();

/** An ID in the path of a page; 404 for any other text. */
export const PathId = createParamDecorator((name: string, context: ExecutionContext) =>
  parseId(readRequest(context).params[name] as string),
);

export const PageQuery = createParamDecorator((_: unknown, context: ExecutionContext) =>
  readQuery(readRequest(context)),
);

export const FormFields = createParamDecorator((_: unknown, context: ExecutionContext) =>
  readForm(readRequest(context)),
);
