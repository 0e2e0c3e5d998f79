import { applyDecorators, SetMetadata, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { PageErrorFilter } from './page-error.filter';

const PAGE = 'gamewharf:page';

export const isPage = (controller: object): boolean => Reflect.getMetadata(PAGE, controller) === true;

const FOR_BROWSERS = 'gamewharf:for-browsers';

export const isForBrowsers = (handler: object): boolean =>
  Reflect.getMetadata(FOR_BROWSERS, handler) === true;

/** On a handler that does not exist for programs, which expect another endpoint at its path. */
export const ForBrowsers = () => SetMetadata(FOR_BROWSERS, true);

/** On a controller of pages: sessions in place of credentials, form tokens, errors as pages. */
export const Pages = () =>
  applyDecorators(SetMetadata(PAGE, true), UseFilters(PageErrorFilter), ApiExcludeController());
