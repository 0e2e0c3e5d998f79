import { applyDecorators, SetMetadata, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { PageErrorFilter } from './page-error.filter';

const PAGE = 'gamewharf:page';

export const isPage = (controller: object): boolean => Reflect.getMetadata(PAGE, controller) === true;

/** On a controller of pages for people: sessions instead of credentials, forms that are ours, errors as pages. */
export const Pages = () =>
  applyDecorators(SetMetadata(PAGE, true), UseFilters(PageErrorFilter), ApiExcludeController());
