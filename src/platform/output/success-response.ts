import { ApiProperty } from '@nestjs/swagger';

/** The response of a write without a result. */
export class SuccessResponse {
  @ApiProperty({ enum: [true], description: 'Always true: errors have a status and `errors`' })
  success: true;
}
