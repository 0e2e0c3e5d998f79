import { ApiProperty } from '@nestjs/swagger';

/** An integer in a response. `nullable`: null is possible; `required: false`: the field may be absent. */
export const IntegerField = (
  description: string,
  example: number,
  more: { nullable?: true; required?: false } = {},
) => ApiProperty({ type: 'integer', format: 'int64', example, description, ...more });

/** A time in a response. */
export const TimeField = (description: string) =>
  ApiProperty({ format: 'date-time', example: '2026-01-02T03:04:05Z', description });
