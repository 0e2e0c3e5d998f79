import { ApiProperty } from '@nestjs/swagger';

/** The response of a write that has nothing to return. */
export class SuccessResponse {
  @ApiProperty({ enum: [true], description: 'Always true: errors have a status and `errors`' })
  success: true;
}
