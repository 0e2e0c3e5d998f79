import { ApiProperty } from '@nestjs/swagger';

/** `nullable`: null is possible; `required: false`: the field may be absent. */
interface Presence {
  nullable?: true;
  required?: false;
}

/** An integer in a response. */
export const IntegerField = (description: string, example?: number, presence: Presence = {}) =>
  ApiProperty({ type: 'integer', format: 'int64', example, description, ...presence });

/** A time in a response. */
export const TimeField = (description: string, example = '2026-01-02T03:04:05Z', presence: Presence = {}) =>
  ApiProperty({ type: String, format: 'date-time', example, description, ...presence });

/** A text in a response that may be null. */
export const NullableText = (description: string, example?: string | null, presence: Presence = {}) =>
  ApiProperty({ type: String, nullable: true, example, description, ...presence });
