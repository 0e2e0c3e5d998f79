import { applyDecorators, SetMetadata, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { PageErrorFilter } from './page-error.filter';

const PAGE = 'gamewharf:page';

export const isPage = (controller: object): boolean => Reflect.getMetadata(PAGE, controller) === true;

const FOR_BROWSERS = 'gamewharf:for-browsers';

export const isForBrowsers = (handler: object): boolean =>
  Reflect.getMetadata(FOR_BROWSERS, handler) === true;

/** On a handler at whose address programs look for something else: to them there is none. */
export const ForBrowsers = () => SetMetadata(FOR_BROWSERS, true);

/** On a controller of pages for people: sessions instead of credentials, forms that are ours, errors as pages. */
export const Pages = () =>
  applyDecorators(SetMetadata(PAGE, true), UseFilters(PageErrorFilter), ApiExcludeController());
