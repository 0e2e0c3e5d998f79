import { applyDecorators, Redirect } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { DownloadCost } from './download-cost';

/** Marks a handler that returns the URL of a file. Always 302: some clients treat 307 and 308 as errors. */
export const RedirectsToFile = () =>
  applyDecorators(
    DownloadCost(),
    Redirect(undefined, 302),
    ApiResponse({
      status: 302,
      description: 'The URL of the file, for any `Range`. Request a new one for each connection.',
      headers: { Location: { description: 'Signed URL', schema: { type: 'string', format: 'uri' } } },
    }),
  );
