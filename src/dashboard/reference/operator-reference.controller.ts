import { Controller, Get } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { OperatorMay } from '../../operator/tokens/operator-may';
import { ApiDescription } from '../../platform/openapi/api-description';
import { HtmlResponse } from '../layout/layout';
import { renderEndpoints } from './endpoints.page';

/** The endpoints that the page `/docs/operator` shows once a token is entered. */
@ApiExcludeController()
@Controller('operator')
export class OperatorReferenceController {
  private response: HtmlResponse | undefined;

  constructor(private readonly description: ApiDescription) {}

  @Get('docs')
  @OperatorMay()
  endpoints(): HtmlResponse {
    return (this.response ??= new HtmlResponse(
      200,
      renderEndpoints(this.description.document('operator')).toString(),
    ));
  }
}
