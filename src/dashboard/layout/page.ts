import { applyDecorators, SetMetadata, UseFilters, UseGuards } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { PAGES } from '../../auth/access';
import { PageErrorFilter } from './page-error.filter';
import { FOR_BROWSERS, PageGuard } from './page.guard';

/** On a handler that does not exist for programs, which expect another endpoint at its path. */
export const ForBrowsers = () => SetMetadata(FOR_BROWSERS, true);

/** On a controller of pages: sessions in place of credentials, form tokens, errors as pages. */
export const Pages = () =>
  applyDecorators(
    SetMetadata(PAGES, true),
    UseGuards(PageGuard),
    UseFilters(PageErrorFilter),
    ApiExcludeController(),
  );
